! SPDX-License-Identifier: BSD-3-Clause
!
! st_ring.f90 - a number goes around a ring of ranks, in the order of a stream.
! Each rank adds 1: by persistent requests first, which are matched once, and
! then by messages that are used once.
!
!     contrib/ucx-st-run mpirun -n 4 build/examples/st_ring
!
module st_ring_kernels
    use, intrinsic :: iso_c_binding
    implicit none

contains

    ! A kernel: runs on the stream, where it must not call MPI
    subroutine add_one(arg) bind(C)
        type(c_ptr), value :: arg
        integer(c_int), pointer :: numbers(:)

        call c_f_pointer(arg, numbers, [2])
        numbers(2) = numbers(1) + 1
    end subroutine

end module

program st_ring
    use, intrinsic :: iso_c_binding
    use mpi_f08
    use mpix_queue_f08
    use st_ring_kernels
    implicit none

    ! What came, and what goes on
    integer(c_int), target, asynchronous :: numbers(2)
    integer :: rank, ranks, provided, left, right, expected
    type(MPI_Request) :: requests(2)
    type(MPIX_Queue) :: queue
    type(c_ptr) :: stream
    logical :: is_first

    ! Messages that are used once need this level, matched ones do not
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    is_first = (rank == 0)
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)
    call MPIX_Host_stream_create(stream)
    call MPIX_Queue_init(MPIX_QUEUE_HOST, stream, queue)

    ! Matched: any number of uses could follow
    numbers = [0, 100]
    call MPI_Recv_init(numbers(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, &
                       requests(1))
    call MPI_Send_init(numbers(2), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, &
                       requests(2))
    call MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE)

    if (is_first) then
        call MPIX_Enqueue_start(queue, requests(2))
    end if
    call MPIX_Enqueue_start(queue, requests(1))
    call MPIX_Enqueue_wait(queue, requests(1))
    if (.not. is_first) then
        call MPIX_Host_stream_launch(stream, add_one, c_loc(numbers))
        call MPIX_Enqueue_start(queue, requests(2))
    end if
    call MPIX_Enqueue_wait(queue, requests(2))
    call MPIX_Queue_wait(queue)
    call MPIX_Host_stream_synchronize(stream)

    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call report("matched", 100)

    ! Used once: the requests are ordinary ones of MPI
    numbers = [0, 200]
    if (is_first) then
        call MPIX_Enqueue_send(numbers(2), 1, MPI_INTEGER, right, 2, &
                               MPI_COMM_WORLD, queue, requests(2))
    end if
    call MPIX_Enqueue_recv(numbers(1), 1, MPI_INTEGER, left, 2, &
                           MPI_COMM_WORLD, queue, requests(1))
    call MPIX_Enqueue_start(queue)
    call MPIX_Enqueue_wait(queue)
    if (.not. is_first) then
        call MPIX_Host_stream_launch(stream, add_one, c_loc(numbers))
        call MPIX_Enqueue_send(numbers(2), 1, MPI_INTEGER, right, 2, &
                               MPI_COMM_WORLD, queue, requests(2))
        call MPIX_Enqueue_start(queue)
    end if
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPIX_Queue_wait(queue)
    call report("used once", 200)

    call MPIX_Queue_free(queue)
    call MPIX_Host_stream_free(stream)
    call MPI_Finalize()

contains

    ! The first rank gets what all others have added to
    subroutine report(kind, first)
        character(*), intent(in) :: kind
        integer, intent(in) :: first

        if (is_first) then
            expected = first + ranks - 1
            print "(a, a, i0, a, i0)", kind, ": ", numbers(1), " of ", expected
            if (numbers(1) /= expected) then
                call MPI_Abort(MPI_COMM_WORLD, 1)
            end if
        end if
    end subroutine

end program
