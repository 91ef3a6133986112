! SPDX-License-Identifier: BSD-3-Clause
!
! mpix_f08.f90 - the calls of the module mpix_queue_f08, each at least once, and
! what they return.
!
module mpix_f08_kernels
    use, intrinsic :: iso_c_binding
    implicit none

    ! Work that is copied to the stream
    type, bind(C) :: work
        type(c_ptr) :: place
        integer(c_int) :: value
    end type

contains

    subroutine set_value(arg) bind(C)
        type(c_ptr), value :: arg
        type(work), pointer :: job
        integer(c_int), pointer :: place

        call c_f_pointer(arg, job)
        call c_f_pointer(job%place, place)
        place = job%value
    end subroutine

    subroutine add_one(arg) bind(C)
        type(c_ptr), value :: arg
        integer(c_int), pointer :: number

        call c_f_pointer(arg, number)
        number = number + 1
    end subroutine

end module

program mpix_f08
    use, intrinsic :: iso_c_binding
    use mpi_f08
    use mpix_queue_f08
    use mpix_f08_kernels
    implicit none

    integer, parameter :: COUNT = 100
    integer :: rank, ranks, left, right, provided, total
    integer :: failed = 0
    type(c_ptr) :: stream
    type(MPIX_Queue) :: queue

    call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)

    call host_streams()
    call MPIX_Host_stream_create(stream)
    call MPIX_Queue_init(MPIX_QUEUE_HOST, stream, queue)
    call information()
    call matched()
    call on_host()
    call exchanges()
    call collectives()
    call neighbours()
    call used_once()
    call halos()
    call errors()
    call MPIX_Queue_free(queue)
    call MPIX_Host_stream_free(stream)

    call MPI_Allreduce(failed, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) then
        print "(a, i0, a, i0, a)", "mpix_f08: ", ranks, " ranks, ", total, &
            " checks failed"
    end if
    call MPI_Finalize()
    if (total /= 0) then
        error stop 1
    end if

contains

    subroutine check(ok, what)
        logical, intent(in) :: ok
        character(*), intent(in) :: what

        if (.not. ok) then
            failed = failed + 1
            print "(a, i0, a, a)", "FAILED rank ", rank, ": ", what
        end if
    end subroutine

    ! The class of a code
    subroutine check_code(code, expected, what)
        integer, intent(in) :: code, expected
        character(*), intent(in) :: what
        integer :: class

        call MPI_Error_class(code, class)
        call check(class == expected, what)
    end subroutine

    subroutine host_streams()
        type(MPIX_Host_group) :: group
        type(MPIX_Host_event) :: first, second
        type(c_ptr) :: alone, bound, shared
        type(work), target :: job
        integer(c_int), target :: number
        integer :: least, greatest, cpus(1), ierror
        real(c_double) :: seconds
        logical :: flag

        call MPIX_Host_priority_range(least, greatest)
        call check(least >= 0 .and. greatest <= 0, "priorities")
        call MPIX_Host_group_create(1, 0, cpus, group)
        call MPIX_Host_stream_create_on(group, greatest, shared)
        call MPIX_Host_stream_create(alone)
        cpus(1) = 1000000
        call MPIX_Host_stream_create_bound(1, cpus, bound, ierror)
        call check_code(ierror, MPI_ERR_ARG, "no such processor")

        call MPIX_Host_event_create(first)
        call MPIX_Host_event_create(second)
        number = 0
        job = work(c_loc(number), 41)
        call MPIX_Host_stream_launch_copy(alone, set_value, c_loc(job), &
                                          c_sizeof(job))
        job%value = 0
        call MPIX_Host_event_record(alone, first)
        call MPIX_Host_event_wait(shared, first)
        call MPIX_Host_stream_launch(shared, add_one, c_loc(number))
        call MPIX_Host_event_record(shared, second)
        call MPIX_Host_event_synchronize(second)
        call MPIX_Host_event_query(second, flag, ierror)
        call check(flag .and. ierror == MPI_SUCCESS, "event passed")
        call MPIX_Host_event_elapsed(first, second, seconds)
        call check(seconds >= 0, "time between events")
        call MPIX_Host_stream_synchronize(alone)
        call MPIX_Host_stream_synchronize(shared)
        call check(number == 42, "what streams have run")

        call MPIX_Host_event_free(first)
        call MPIX_Host_event_free(second)
        call MPIX_Host_stream_free(shared)
        call MPIX_Host_stream_free(alone)
        call MPIX_Host_group_free(group)
        call check(.not. c_associated(group%handle), "the group's handle")
    end subroutine

    subroutine matched()
        integer, target, asynchronous :: in(COUNT), out(COUNT)
        type(MPI_Request) :: requests(2)
        type(MPI_Status) :: statuses(2), status
        type(MPIX_Queue_stats) :: before, after
        integer :: i, length, ierror
        logical :: flag

        call MPI_Recv_init(in, COUNT, MPI_INTEGER, left, 7, MPI_COMM_WORLD, &
                           requests(1))
        call MPI_Rsend_init(out, COUNT - 1, MPI_INTEGER, right, 7, &
                            MPI_COMM_WORLD, requests(2))
        call MPIX_Matchall(2, requests, statuses, ierror)
        call MPI_Get_count(statuses(1), MPI_INTEGER, length)
        call check(ierror == MPI_SUCCESS .and. length == COUNT - 1 .and. &
                   statuses(1)%MPI_SOURCE == left .and. &
                   statuses(1)%MPI_TAG == 7, "statuses of a match")
        call MPIX_Queue_get_stats(before)
        in = -1
        out = [(1000 * rank + i, i = 1, COUNT)]
        ! A ready send needs a started receive
        call MPIX_Enqueue_start(queue, requests(1))
        call MPIX_Host_stream_synchronize(stream)
        call MPI_Barrier(MPI_COMM_WORLD)
        call MPIX_Enqueue_startall(queue, 1, requests(2))
        call MPIX_Enqueue_wait(queue, requests(2))
        call MPIX_Enqueue_waitall(queue, 1, requests(1))
        call MPIX_Queue_wait(queue)
        call check(all(in(1:COUNT - 1) == &
                       [(1000 * left + i, i = 1, COUNT - 1)]) .and. &
                   in(COUNT) == -1, "data of a matched request")
        call MPIX_Queue_get_stats(after)
        call check(after%starts == before%starts + 2, "statistics")
        call MPI_Request_free(requests(1))
        call MPI_Request_free(requests(2))
        call check(requests(1) == MPI_REQUEST_NULL, "a freed request")

        ! Matched step by step
        call MPI_Recv_init(in, COUNT, MPI_INTEGER, left, 8, MPI_COMM_WORLD, &
                           requests(1))
        call MPI_Send_init(out, COUNT, MPI_INTEGER, right, 8, MPI_COMM_WORLD, &
                           requests(2))
        call MPIX_Imatch(requests(1))
        call MPIX_Imatchall(1, requests(2))
        flag = .false.
        do while (.not. flag)
            call MPIX_Is_matched(requests(1), flag, status)
        end do
        call MPI_Get_count(status, MPI_INTEGER, length)
        call check(length == COUNT, "status of a request that is matched")
        flag = .false.
        do while (.not. flag)
            call MPIX_Is_matched(requests(2), flag, MPI_STATUS_IGNORE)
        end do
        call MPIX_Enqueue_startall(queue, 2, requests)
        call MPIX_Enqueue_waitall(queue, 2, requests)
        call MPIX_Queue_wait(queue)
        call check(in(COUNT) == 1000 * left + COUNT, "data after MPIX_Imatch")
        call MPI_Request_free(requests(1))
        call MPI_Request_free(requests(2))
    end subroutine

    subroutine information()
        type(MPIX_Queue_info) :: info
        integer :: level, ierror

        call MPI_Query_thread(level)
        call MPIX_Queue_get_info(info, ierror)
        call check(ierror == MPI_SUCCESS .and. &
                   info%thread_level == level .and. info%num_lanes >= 1 .and. &
                   info%num_lanes <= MPIX_QUEUE_MAX_LANES, "information")
        call check(any(info%binding(1) == ["u", "m"]) .and. &
                   all(info%lanes(1, 1:info%num_lanes) /= c_null_char) .and. &
                   any(info%mpi_library == c_null_char), "texts")
        call check(info%num_waits == 0 .and. &
                   info%waits_for(1) == c_null_char, "nothing waits")
        call MPIX_Queue_attach(MPI_COMM_WORLD, ierror)
        call check_code(ierror, MPI_SUCCESS, "attached before")
    end subroutine

    ! The stream starts and the host waits, or both is the host's, by MPI's own
    ! calls
    subroutine on_host()
        integer, target, asynchronous :: in(COUNT), out(COUNT)
        type(MPI_Request) :: requests(2)
        type(MPI_Status) :: status, statuses(2)
        integer :: use, length, ierror
        logical :: flag

        call MPI_Recv_init(in, COUNT, MPI_INTEGER, left, 9, MPI_COMM_WORLD, &
                           requests(1))
        call MPI_Send_init(out, COUNT - 2, MPI_INTEGER, right, 9, &
                           MPI_COMM_WORLD, requests(2))
        call MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE)

        do use = 1, 6
            in = -1
            out = 100 * rank + use
            if (modulo(use, 2) == 0) then
                call MPI_Startall(2, requests)
            else
                call MPIX_Enqueue_startall(queue, 2, requests)
            end if

            length = -1
            select case (modulo(use, 3))
            case (0)
                call MPI_Wait(requests(1), status)
                call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
            case (1)
                flag = .false.
                do while (.not. flag)
                    call MPI_Test(requests(1), flag, status)
                end do
                flag = .false.
                do while (.not. flag)
                    call MPI_Test(requests(2), flag, MPI_STATUS_IGNORE)
                end do
            case (2)
                call MPI_Waitall(2, requests, statuses, ierror)
                call check(ierror == MPI_SUCCESS, "MPI_Waitall")
                status = statuses(1)
            end select
            call MPI_Get_count(status, MPI_INTEGER, length)
            call check(length == COUNT - 2 .and. &
                       status%MPI_SOURCE == left .and. status%MPI_TAG == 9, &
                       "status of a use that the host waits for")
            call check(all(in(1:COUNT - 2) == 100 * left + use) .and. &
                       all(in(COUNT - 1:) == -1), "data that it waits for")
        end do

        call MPIX_Queue_wait(queue)
        call MPI_Wait(requests(1), status, ierror)
        call check(ierror == MPI_SUCCESS .and. &
                   status%MPI_SOURCE == MPI_ANY_SOURCE, "nothing to wait for")
        call MPI_Request_free(requests(1))
        call MPI_Request_free(requests(2))
    end subroutine

    ! Two requests as one, started by the stream and by the host
    subroutine exchanges()
        integer, target, asynchronous :: in(COUNT), out(COUNT)
        type(MPI_Request) :: requests(2), exchange
        type(MPI_Info) :: info
        integer :: ierror

        call MPI_Recv_init(in, COUNT, MPI_INTEGER, left, 10, MPI_COMM_WORLD, &
                           requests(1))
        call MPI_Send_init(out, COUNT, MPI_INTEGER, right, 10, &
                           MPI_COMM_WORLD, requests(2))
        call MPI_Info_create(info)
        call MPI_Info_set(info, "mpix_coupled", "true")
        call MPIX_Exchange_init(2, requests, info, exchange, ierror)
        call check(ierror == MPI_SUCCESS, "MPIX_Exchange_init")
        call MPI_Info_free(info)
        call MPIX_Match(exchange, MPI_STATUS_IGNORE)
        call MPIX_Enqueue_start(queue, requests(1), ierror)
        call check_code(ierror, MPI_ERR_REQUEST, "a member's start")

        in = -1
        out = 10 * rank
        call MPIX_Enqueue_start(queue, exchange)
        call MPIX_Enqueue_wait(queue, exchange)
        call MPIX_Queue_wait(queue)
        call check(all(in == 10 * left), "data of an exchange")
        out = 10 * rank + 1
        call MPI_Start(exchange)
        call MPI_Wait(exchange, MPI_STATUS_IGNORE)
        call check(all(in == 10 * left + 1), "data that the host waits for")
        call MPI_Request_free(exchange)
        call MPI_Request_free(requests(1))
        call MPI_Request_free(requests(2))
    end subroutine

    ! Runs one use of collectives, and frees them
    subroutine run(requests)
        type(MPI_Request), intent(inout) :: requests(:)
        integer :: i

        call MPIX_Enqueue_startall(queue, size(requests), requests)
        call MPIX_Enqueue_waitall(queue, size(requests), requests)
        call MPIX_Queue_wait(queue)
        do i = 1, size(requests)
            call MPI_Request_free(requests(i))
        end do
    end subroutine

    subroutine collectives()
        integer, target, asynchronous :: buffer, own(2), blocks(2, ranks)
        integer, target, asynchronous :: out(ranks), in(ranks)
        real(c_double), target, asynchronous :: part, total, high(2)
        type(MPI_Request) :: requests(7)
        integer :: i, ierror

        call MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
        call MPIX_Bcast_init(buffer, 1, MPI_INTEGER, ranks - 1, &
                             MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
        call MPIX_Allreduce_init(part, total, 1, MPI_DOUBLE_PRECISION, &
                                 MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
                                 requests(3))
        if (rank == 0) then
            call MPIX_Reduce_init(MPI_IN_PLACE, high, 2, MPI_DOUBLE_PRECISION, &
                                  MPI_MAX, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &
                                  requests(4))
        else
            call MPIX_Reduce_init(high, high, 2, MPI_DOUBLE_PRECISION, &
                                  MPI_MAX, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &
                                  requests(4))
        end if
        call MPIX_Allgather_init(own, 2, MPI_INTEGER, blocks, 2, MPI_INTEGER, &
                                 MPI_COMM_WORLD, MPI_INFO_NULL, requests(5))
        call MPIX_Alltoall_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, &
                                MPI_COMM_WORLD, MPI_INFO_NULL, requests(6))
        call MPIX_Allreduce_init(MPI_IN_PLACE, own, 0, MPI_INTEGER, MPI_SUM, &
                                 MPI_COMM_WORLD, MPI_INFO_NULL, requests(7))
        call MPIX_Matchall(7, requests, MPI_STATUSES_IGNORE, ierror)
        call check_code(ierror, MPI_SUCCESS, "match of collectives")

        buffer = rank
        part = 0.5d0 * rank
        high = [1d0 * rank, -1d0 * rank]
        own = [rank, -rank]
        out = [(100 * rank + i, i = 1, ranks)]
        call run(requests)
        call check(buffer == ranks - 1, "data of a broadcast")
        call check(total == 0.25d0 * ranks * (ranks - 1), "sum of all")
        if (rank == 0) then
            call check(high(1) == ranks - 1 .and. high(2) == 0, "the highest")
        end if
        call check(all(blocks(1, :) == [(i, i = 0, ranks - 1)]) .and. &
                   all(blocks(2, :) == [(-i, i = 0, ranks - 1)]), &
                   "what is gathered")
        call check(all(in == [(100 * i + rank + 1, i = 0, ranks - 1)]), &
                   "what all sent")

        call MPIX_Bcast_init(blocks(1, :), ranks, MPI_INTEGER, 0, &
                             MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierror)
        call check_code(ierror, &
                        merge(MPI_SUCCESS, MPI_ERR_BUFFER, ranks == 1), &
                        "a broadcast with gaps")
        if (ranks == 1) then
            call MPI_Request_free(requests(1))
        end if
    end subroutine

    ! In a ring, whose first neighbour is the left one
    subroutine neighbours()
        integer, target, asynchronous :: out(2), in(2), outv(3), inv(3)
        integer, asynchronous :: sendcounts(2), sdispls(2)
        integer, asynchronous :: recvcounts(2), rdispls(2)
        type(MPI_Request) :: requests(2)
        type(MPI_Comm) :: ring

        call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, [left, right], &
                                            MPI_UNWEIGHTED, 2, [right, left], &
                                            MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                            .false., ring)
        ! Two go to the right, behind the one that goes to the left
        sendcounts = [2, 1]
        sdispls = [1, 0]
        recvcounts = [2, 1]
        rdispls = [0, 2]
        call MPIX_Neighbor_alltoall_init(out, 1, MPI_INTEGER, in, 1, &
                                         MPI_INTEGER, ring, MPI_INFO_NULL, &
                                         requests(1))
        call MPIX_Neighbor_alltoallv_init(outv, sendcounts, sdispls, &
                                          MPI_INTEGER, inv, recvcounts, &
                                          rdispls, MPI_INTEGER, ring, &
                                          MPI_INFO_NULL, requests(2))
        call MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE)
        out = [10 * rank + 1, 10 * rank + 2]
        outv = [10 * rank + 3, 10 * rank + 4, 10 * rank + 5]
        in = -1
        inv = -1
        call run(requests)
        call check(all(in == [10 * left + 1, 10 * right + 2]), &
                   "data of neighbours")
        call check(all(inv == [10 * left + 4, 10 * left + 5, 10 * right + 3]), &
                   "data of neighbours, of different lengths")
        call MPI_Comm_free(ring)
    end subroutine

    subroutine used_once()
        integer, target, asynchronous :: in(COUNT), out(COUNT), bottom(2)
        integer(MPI_ADDRESS_KIND) :: place
        type(MPI_Request) :: requests(4)
        type(MPIX_Queue) :: own, other
        type(MPI_Datatype) :: type
        type(MPI_Comm) :: comm
        integer :: i, ierror

        call MPI_Comm_dup(MPI_COMM_WORLD, comm)
        call MPIX_Create_queue(stream, own)
        call MPIX_Create_queue(comm, stream, other)
        in = -1
        out = [(1000 * rank + i, i = 1, COUNT)]
        bottom = [-1, rank]
        call MPI_Get_address(bottom, place)
        call MPI_Type_create_hindexed(1, [1], [place], MPI_INTEGER, type)
        call MPI_Type_commit(type)

        call MPIX_Enqueue_recv(in(1:50), 50, MPI_INTEGER, left, 1, &
                               MPI_COMM_WORLD, own, requests(1))
        call MPIX_Enqueue_send(out(1:50), 50, MPI_INTEGER, right, 1, &
                               MPI_COMM_WORLD, own, requests(2))
        call MPIX_Enqueue_recv(MPI_BOTTOM, 1, type, left, 2, other, requests(3))
        call MPIX_Enqueue_send(bottom(2), 1, MPI_INTEGER, right, 2, other, &
                               requests(4))
        call MPIX_Enqueue_start(own)
        call MPIX_Enqueue_start(other)
        call MPIX_Enqueue_wait(other)
        call MPIX_Enqueue_wait(own)
        call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
        call MPIX_Queue_wait(own)
        call MPIX_Queue_wait(other)
        call check(all(in(1:50) == [(1000 * left + i, i = 1, 50)]) .and. &
                   all(in(51:) == -1), "data of a message that is used once")
        call check(bottom(1) == left, "data at MPI_BOTTOM")

        call MPIX_Enqueue_send(out(::2), 50, MPI_INTEGER, right, 1, &
                               MPI_COMM_WORLD, own, requests(1), ierror)
        call check_code(ierror, MPI_ERR_BUFFER, "an array with gaps")
        call MPI_Type_free(type)
        call MPIX_Free_queue(own)
        call MPIX_Free_queue(other)
        call MPI_Comm_free(comm)
    end subroutine

    subroutine halos()
        integer, target, asynchronous :: in(2), out(2)
        type(MPIX_Halo_side) :: sides(2)
        type(MPIX_Halo) :: halo
        type(MPI_Comm) :: cart
        integer :: i, form, mirror

        mirror = ranks - 1 - rank
        call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., &
                             cart)
        do i = 1, 2
            sides(i) = MPIX_Halo_side(c_loc(out(i)), 1, MPI_INTEGER, &
                                      c_loc(in(i)), 1, MPI_INTEGER)
        end do

        do form = 1, 3
            in = -1
            out = [10 * rank + 1, 10 * rank + 2]
            select case (form)
            case (1)
                call MPIX_Halo_init(cart, 2, sides, queue, halo)
            case (2)
                call MPIX_Halo_init_list(MPI_COMM_WORLD, 2, [left, right], &
                                         [1, 2], [2, 1], sides, queue, halo)
            case (3)
                call MPIX_Halo_init_list(MPI_COMM_WORLD, 1, [mirror], &
                                         sides(2:), queue, halo)
            end select
            call MPIX_Halo_start(halo)
            call MPIX_Halo_wait(halo)
            call MPIX_Queue_wait(queue)
            if (form < 3) then
                call check(all(in == [10 * left + 2, 10 * right + 1]), &
                           "data of a halo")
            else
                call check(in(2) == 10 * mirror + 2, "data of one side")
            end if
            call MPIX_Halo_free(halo)
            call check(.not. c_associated(halo%handle), "the halo's handle")
        end do
        call MPI_Comm_free(cart)
    end subroutine

    subroutine errors()
        type(MPI_Request) :: request
        type(MPIX_Queue) :: none
        integer :: ierror, number

        none = MPIX_QUEUE_NULL
        call MPIX_Queue_init(MPIX_QUEUE_CUDA, stream, none, ierror)
        call check_code(ierror, MPI_ERR_ARG, "CUDA")
        call MPIX_Queue_wait(none, ierror)
        call check_code(ierror, MPI_ERR_ARG, "no queue")
        call MPI_Recv_init(number, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, &
                           MPI_COMM_WORLD, request)
        call MPIX_Match(request, MPI_STATUS_IGNORE, ierror)
        call check_code(ierror, MPI_ERR_RANK, "any source")
        call MPIX_Enqueue_wait(queue, request, ierror)
        call check_code(ierror, MPI_ERR_REQUEST, "an unmatched request")
        call MPI_Request_free(request)
        call MPIX_Halo_start(MPIX_HALO_NULL, ierror)
        call check_code(ierror, MPI_ERR_ARG, "no halo")
        if (rank == 0) then
            call MPIX_Queue_print_stats(ierror)
            call check_code(ierror, MPI_SUCCESS, "statistics")
        end if
    end subroutine

end program
