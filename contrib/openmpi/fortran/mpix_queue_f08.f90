! SPDX-License-Identifier: BSD-3-Clause
!
! mpix_queue_f08.f90 - the module of stream-triggered MPI messages, to be used
! together with mpi_f08.
!
! The calls are those of mpix_queue.h, which describes them; ierror is optional.
! Link with -lmpix_queue_f08 -lmpix_queue, before the MPI library. A buffer must
! be contiguous; what is not has an MPI datatype.
!
module mpix_queue_f08
    use, intrinsic :: iso_c_binding
    use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request, &
                       MPI_Status
    implicit none

    type, bind(C) :: MPIX_Queue
        type(c_ptr) :: handle = c_null_ptr
    end type

    type, bind(C) :: MPIX_Halo
        type(c_ptr) :: handle = c_null_ptr
    end type

    type, bind(C) :: MPIX_Host_group
        type(c_ptr) :: handle = c_null_ptr
    end type

    type, bind(C) :: MPIX_Host_event
        type(c_ptr) :: handle = c_null_ptr
    end type

    type(MPIX_Queue), parameter :: MPIX_QUEUE_NULL = MPIX_Queue(c_null_ptr)
    type(MPIX_Halo), parameter :: MPIX_HALO_NULL = MPIX_Halo(c_null_ptr)
    type(MPIX_Host_group), parameter :: MPIX_HOST_GROUP_NULL = &
        MPIX_Host_group(c_null_ptr)
    type(MPIX_Host_event), parameter :: MPIX_HOST_EVENT_NULL = &
        MPIX_Host_event(c_null_ptr)

    integer, parameter :: MPIX_QUEUE_HOST = 0
    integer, parameter :: MPIX_QUEUE_HIP = 1
    integer, parameter :: MPIX_QUEUE_CUDA = 2
    integer, parameter :: MPIX_QUEUE_GPU_MEM_OPS = 3
    integer, parameter :: MPIX_QUEUE_CXI = 4
    integer, parameter :: MPIX_HOST_ARGS_MAX = 4096

    ! One neighbour of a halo. The buffers are given by c_loc()
    type, bind(C) :: MPIX_Halo_side
        type(c_ptr) :: sendbuf = c_null_ptr
        integer :: sendcount = 0
        type(MPI_Datatype) :: sendtype
        type(c_ptr) :: recvbuf = c_null_ptr
        integer :: recvcount = 0
        type(MPI_Datatype) :: recvtype
    end type

    ! The texts end with c_null_char
    type, bind(C) :: MPIX_Queue_stats
        integer(c_int64_t) :: starts
        integer(c_int64_t) :: waits
        integer(c_int64_t) :: writes_fired
        integer(c_int64_t) :: chunks
        integer(c_int64_t) :: copies
        integer(c_int64_t) :: proxied
        integer(c_int64_t) :: messages
        character(kind=c_char) :: provider(64)
        character(kind=c_char) :: device(64)
        integer(c_int64_t) :: queue_messages
    end type

    integer, parameter :: MPIX_QUEUE_MAX_LANES = 8

    ! Each column of the lanes is a name
    type, bind(C) :: MPIX_Queue_info
        character(kind=c_char) :: binding(16)
        character(kind=c_char) :: reason(256)
        character(kind=c_char) :: mpi_library(128)
        integer(c_int) :: thread_level
        integer(c_int) :: num_lanes
        character(kind=c_char) :: lanes(16, MPIX_QUEUE_MAX_LANES)
        character(kind=c_char) :: provider(64)
        character(kind=c_char) :: device(64)
        integer(c_int) :: num_waits
        character(kind=c_char) :: waits_for(256)
        character(kind=c_char) :: tier_reason(256)
    end type

    abstract interface
        ! A function that a host stream runs
        subroutine MPIX_Host_func(arg) bind(C)
            import
            type(c_ptr), value :: arg
        end subroutine
    end interface

    interface

        ! Queues

        subroutine MPIX_Queue_init(type, stream, queue, ierror) &
            bind(C, name="mpix_f08_queue_init")
            import
            integer, value :: type
            type(c_ptr), value :: stream
            type(MPIX_Queue), intent(out) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Queue_free(queue, ierror) &
            bind(C, name="mpix_f08_queue_free")
            import
            type(MPIX_Queue), intent(inout) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Queue_wait(queue, ierror) &
            bind(C, name="mpix_f08_queue_wait")
            import
            type(MPIX_Queue), intent(in) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Queue_get_stats(stats, ierror) &
            bind(C, name="mpix_f08_queue_get_stats")
            import
            type(MPIX_Queue_stats), intent(out) :: stats
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Prints to the standard output
        subroutine MPIX_Queue_print_stats(ierror) &
            bind(C, name="mpix_f08_queue_print_stats")
            import
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Queue_get_info(info, ierror) &
            bind(C, name="mpix_f08_queue_get_info")
            import
            type(MPIX_Queue_info), intent(out) :: info
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Queue_attach(comm, ierror) &
            bind(C, name="mpix_f08_queue_attach")
            import
            type(MPI_Comm), intent(in) :: comm
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Matching

        subroutine MPIX_Match(request, status, ierror) &
            bind(C, name="mpix_f08_match")
            import
            type(MPI_Request), intent(in) :: request
            type(MPI_Status) :: status
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Matchall(count, requests, statuses, ierror) &
            bind(C, name="mpix_f08_matchall")
            import
            integer, value :: count
            type(MPI_Request), intent(in) :: requests(*)
            type(MPI_Status) :: statuses(*)
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Imatch(request, ierror) &
            bind(C, name="mpix_f08_imatch")
            import
            type(MPI_Request), intent(in) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Imatchall(count, requests, ierror) &
            bind(C, name="mpix_f08_imatchall")
            import
            integer, value :: count
            type(MPI_Request), intent(in) :: requests(*)
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine mpix_f08_is_matched(request, flag, status, ierror) &
            bind(C, name="mpix_f08_is_matched")
            import
            type(MPI_Request), intent(in) :: request
            integer, intent(out) :: flag
            type(MPI_Status) :: status
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Starts and waits of matched requests

        subroutine MPIX_Enqueue_start_req(queue, request, ierror) &
            bind(C, name="mpix_f08_enqueue_start_req")
            import
            type(MPIX_Queue), intent(in) :: queue
            type(MPI_Request), intent(in) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_startall(queue, count, requests, ierror) &
            bind(C, name="mpix_f08_enqueue_startall")
            import
            type(MPIX_Queue), intent(in) :: queue
            integer, value :: count
            type(MPI_Request), intent(in) :: requests(*)
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_wait_req(queue, request, ierror) &
            bind(C, name="mpix_f08_enqueue_wait_req")
            import
            type(MPIX_Queue), intent(in) :: queue
            type(MPI_Request), intent(in) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_waitall(queue, count, requests, ierror) &
            bind(C, name="mpix_f08_enqueue_waitall")
            import
            type(MPIX_Queue), intent(in) :: queue
            integer, value :: count
            type(MPI_Request), intent(in) :: requests(*)
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Messages that are used once

        subroutine MPIX_Create_queue_stream(stream, queue, ierror) &
            bind(C, name="mpix_f08_create_queue_stream")
            import
            type(c_ptr), value :: stream
            type(MPIX_Queue), intent(out) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Create_queue_comm(comm, stream, queue, ierror) &
            bind(C, name="mpix_f08_create_queue_comm")
            import
            type(MPI_Comm), intent(in) :: comm
            type(c_ptr), value :: stream
            type(MPIX_Queue), intent(out) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Free_queue(queue, ierror) &
            bind(C, name="mpix_f08_free_queue")
            import
            type(MPIX_Queue), intent(in) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_send_comm(buf, count, datatype, dest, tag, &
                                          comm, queue, request, ierror) &
            bind(C, name="mpix_f08_enqueue_send_comm")
            import
            type(*), dimension(..), intent(in), asynchronous :: buf
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            integer, value :: dest
            integer, value :: tag
            type(MPI_Comm), intent(in) :: comm
            type(MPIX_Queue), intent(in) :: queue
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_send_queue(buf, count, datatype, dest, tag, &
                                           queue, request, ierror) &
            bind(C, name="mpix_f08_enqueue_send_queue")
            import
            type(*), dimension(..), intent(in), asynchronous :: buf
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            integer, value :: dest
            integer, value :: tag
            type(MPIX_Queue), intent(in) :: queue
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_recv_comm(buf, count, datatype, source, tag, &
                                          comm, queue, request, ierror) &
            bind(C, name="mpix_f08_enqueue_recv_comm")
            import
            type(*), dimension(..), asynchronous :: buf
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            integer, value :: source
            integer, value :: tag
            type(MPI_Comm), intent(in) :: comm
            type(MPIX_Queue), intent(in) :: queue
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_recv_queue(buf, count, datatype, source, tag, &
                                           queue, request, ierror) &
            bind(C, name="mpix_f08_enqueue_recv_queue")
            import
            type(*), dimension(..), asynchronous :: buf
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            integer, value :: source
            integer, value :: tag
            type(MPIX_Queue), intent(in) :: queue
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_start_batch(queue, ierror) &
            bind(C, name="mpix_f08_enqueue_start_batch")
            import
            type(MPIX_Queue), intent(in) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Enqueue_wait_batch(queue, ierror) &
            bind(C, name="mpix_f08_enqueue_wait_batch")
            import
            type(MPIX_Queue), intent(in) :: queue
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Persistent collectives

        subroutine MPIX_Barrier_init(comm, info, request, ierror) &
            bind(C, name="mpix_f08_barrier_init")
            import
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Bcast_init(buffer, count, datatype, root, comm, info, &
                                   request, ierror) &
            bind(C, name="mpix_f08_bcast_init")
            import
            type(*), dimension(..), asynchronous :: buffer
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            integer, value :: root
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Allreduce_init(sendbuf, recvbuf, count, datatype, op, &
                                       comm, info, request, ierror) &
            bind(C, name="mpix_f08_allreduce_init")
            import
            type(*), dimension(..), intent(in), asynchronous :: sendbuf
            type(*), dimension(..), asynchronous :: recvbuf
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            type(MPI_Op), intent(in) :: op
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Reduce_init(sendbuf, recvbuf, count, datatype, op, &
                                    root, comm, info, request, ierror) &
            bind(C, name="mpix_f08_reduce_init")
            import
            type(*), dimension(..), intent(in), asynchronous :: sendbuf
            type(*), dimension(..), asynchronous :: recvbuf
            integer, value :: count
            type(MPI_Datatype), intent(in) :: datatype
            type(MPI_Op), intent(in) :: op
            integer, value :: root
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Allgather_init(sendbuf, sendcount, sendtype, recvbuf, &
                                       recvcount, recvtype, comm, info, &
                                       request, ierror) &
            bind(C, name="mpix_f08_allgather_init")
            import
            type(*), dimension(..), intent(in), asynchronous :: sendbuf
            integer, value :: sendcount
            type(MPI_Datatype), intent(in) :: sendtype
            type(*), dimension(..), asynchronous :: recvbuf
            integer, value :: recvcount
            type(MPI_Datatype), intent(in) :: recvtype
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Alltoall_init(sendbuf, sendcount, sendtype, recvbuf, &
                                      recvcount, recvtype, comm, info, &
                                      request, ierror) &
            bind(C, name="mpix_f08_alltoall_init")
            import
            type(*), dimension(..), intent(in), asynchronous :: sendbuf
            integer, value :: sendcount
            type(MPI_Datatype), intent(in) :: sendtype
            type(*), dimension(..), asynchronous :: recvbuf
            integer, value :: recvcount
            type(MPI_Datatype), intent(in) :: recvtype
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Neighbor_alltoall_init(sendbuf, sendcount, sendtype, &
                                               recvbuf, recvcount, recvtype, &
                                               comm, info, request, ierror) &
            bind(C, name="mpix_f08_neighbor_alltoall_init")
            import
            type(*), dimension(..), intent(in), asynchronous :: sendbuf
            integer, value :: sendcount
            type(MPI_Datatype), intent(in) :: sendtype
            type(*), dimension(..), asynchronous :: recvbuf
            integer, value :: recvcount
            type(MPI_Datatype), intent(in) :: recvtype
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Neighbor_alltoallv_init(sendbuf, sendcounts, sdispls, &
                                                sendtype, recvbuf, recvcounts, &
                                                rdispls, recvtype, comm, info, &
                                                request, ierror) &
            bind(C, name="mpix_f08_neighbor_alltoallv_init")
            import
            type(*), dimension(..), intent(in), asynchronous :: sendbuf
            integer, intent(in), asynchronous :: sendcounts(*)
            integer, intent(in), asynchronous :: sdispls(*)
            type(MPI_Datatype), intent(in) :: sendtype
            type(*), dimension(..), asynchronous :: recvbuf
            integer, intent(in), asynchronous :: recvcounts(*)
            integer, intent(in), asynchronous :: rdispls(*)
            type(MPI_Datatype), intent(in) :: recvtype
            type(MPI_Comm), intent(in) :: comm
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: request
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Exchanges

        subroutine MPIX_Exchange_init(count, requests, info, exchange, &
                                      ierror) &
            bind(C, name="mpix_f08_exchange_init")
            import
            integer, value :: count
            type(MPI_Request), intent(in) :: requests(*)
            type(MPI_Info), intent(in) :: info
            type(MPI_Request), intent(out) :: exchange
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Halos

        subroutine MPIX_Halo_init(comm, count, sides, queue, halo, ierror) &
            bind(C, name="mpix_f08_halo_init")
            import
            type(MPI_Comm), intent(in) :: comm
            integer, value :: count
            type(MPIX_Halo_side), intent(in) :: sides(*)
            type(MPIX_Queue), intent(in) :: queue
            type(MPIX_Halo), intent(out) :: halo
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine mpix_f08_halo_init_list(comm, count, ranks, sendtags, &
                                           recvtags, sides, queue, halo, &
                                           ierror) &
            bind(C, name="mpix_f08_halo_init_list")
            import
            type(MPI_Comm), intent(in) :: comm
            integer, value :: count
            integer, intent(in) :: ranks(*)
            integer, optional, intent(in) :: sendtags(*)
            integer, optional, intent(in) :: recvtags(*)
            type(MPIX_Halo_side), intent(in) :: sides(*)
            type(MPIX_Queue), intent(in) :: queue
            type(MPIX_Halo), intent(out) :: halo
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Halo_start(halo, ierror) &
            bind(C, name="mpix_f08_halo_start")
            import
            type(MPIX_Halo), intent(in) :: halo
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Halo_wait(halo, ierror) &
            bind(C, name="mpix_f08_halo_wait")
            import
            type(MPIX_Halo), intent(in) :: halo
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Halo_free(halo, ierror) &
            bind(C, name="mpix_f08_halo_free")
            import
            type(MPIX_Halo), intent(inout) :: halo
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Host streams

        subroutine MPIX_Host_stream_create(stream, ierror) &
            bind(C, name="mpix_f08_host_stream_create")
            import
            type(c_ptr), intent(out) :: stream
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_stream_create_bound(count, cpus, stream, ierror) &
            bind(C, name="mpix_f08_host_stream_create_bound")
            import
            integer, value :: count
            integer, intent(in) :: cpus(*)
            type(c_ptr), intent(out) :: stream
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_stream_create_on(group, priority, stream, ierror) &
            bind(C, name="mpix_f08_host_stream_create_on")
            import
            type(MPIX_Host_group), intent(in) :: group
            integer, value :: priority
            type(c_ptr), intent(out) :: stream
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_stream_free(stream, ierror) &
            bind(C, name="mpix_f08_host_stream_free")
            import
            type(c_ptr), intent(inout) :: stream
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_stream_launch(stream, func, arg, ierror) &
            bind(C, name="mpix_f08_host_stream_launch")
            import
            type(c_ptr), value :: stream
            procedure(MPIX_Host_func) :: func
            type(c_ptr), value :: arg
            integer, optional, intent(out) :: ierror
        end subroutine

        ! The arguments are given by c_loc()
        subroutine MPIX_Host_stream_launch_copy(stream, func, args, size, &
                                                ierror) &
            bind(C, name="mpix_f08_host_stream_launch_copy")
            import
            type(c_ptr), value :: stream
            procedure(MPIX_Host_func) :: func
            type(c_ptr), value :: args
            integer(c_size_t), value :: size
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_stream_synchronize(stream, ierror) &
            bind(C, name="mpix_f08_host_stream_synchronize")
            import
            type(c_ptr), value :: stream
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Groups of host streams

        subroutine MPIX_Host_group_create(threads, count, cpus, group, ierror) &
            bind(C, name="mpix_f08_host_group_create")
            import
            integer, value :: threads
            integer, value :: count
            integer, intent(in) :: cpus(*)
            type(MPIX_Host_group), intent(out) :: group
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_group_free(group, ierror) &
            bind(C, name="mpix_f08_host_group_free")
            import
            type(MPIX_Host_group), intent(inout) :: group
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_priority_range(least, greatest, ierror) &
            bind(C, name="mpix_f08_host_priority_range")
            import
            integer, intent(out) :: least
            integer, intent(out) :: greatest
            integer, optional, intent(out) :: ierror
        end subroutine

        ! Events of host streams

        subroutine MPIX_Host_event_create(event, ierror) &
            bind(C, name="mpix_f08_host_event_create")
            import
            type(MPIX_Host_event), intent(out) :: event
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_event_free(event, ierror) &
            bind(C, name="mpix_f08_host_event_free")
            import
            type(MPIX_Host_event), intent(inout) :: event
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_event_record(stream, event, ierror) &
            bind(C, name="mpix_f08_host_event_record")
            import
            type(c_ptr), value :: stream
            type(MPIX_Host_event), intent(in) :: event
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_event_wait(stream, event, ierror) &
            bind(C, name="mpix_f08_host_event_wait")
            import
            type(c_ptr), value :: stream
            type(MPIX_Host_event), intent(in) :: event
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine mpix_f08_host_event_query(event, flag, ierror) &
            bind(C, name="mpix_f08_host_event_query")
            import
            type(MPIX_Host_event), intent(in) :: event
            integer, intent(out) :: flag
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_event_synchronize(event, ierror) &
            bind(C, name="mpix_f08_host_event_synchronize")
            import
            type(MPIX_Host_event), intent(in) :: event
            integer, optional, intent(out) :: ierror
        end subroutine

        subroutine MPIX_Host_event_elapsed(start, end, seconds, ierror) &
            bind(C, name="mpix_f08_host_event_elapsed")
            import
            type(MPIX_Host_event), intent(in) :: start
            type(MPIX_Host_event), intent(in) :: end
            real(c_double), intent(out) :: seconds
            integer, optional, intent(out) :: ierror
        end subroutine

    end interface

    ! Calls that their arguments tell apart

    interface MPIX_Create_queue
        procedure MPIX_Create_queue_stream, MPIX_Create_queue_comm
    end interface

    interface MPIX_Enqueue_send
        procedure MPIX_Enqueue_send_comm, MPIX_Enqueue_send_queue
    end interface

    interface MPIX_Enqueue_recv
        procedure MPIX_Enqueue_recv_comm, MPIX_Enqueue_recv_queue
    end interface

    interface MPIX_Enqueue_start
        procedure MPIX_Enqueue_start_batch, MPIX_Enqueue_start_req
    end interface

    interface MPIX_Enqueue_wait
        procedure MPIX_Enqueue_wait_batch, MPIX_Enqueue_wait_req
    end interface

    ! With tags and without
    interface MPIX_Halo_init_list
        procedure MPIX_Halo_init_list_tags, MPIX_Halo_init_list_ranks
    end interface

contains

    ! C has no logical values

    subroutine MPIX_Is_matched(request, flag, status, ierror)
        type(MPI_Request), intent(in) :: request
        logical, intent(out) :: flag
        type(MPI_Status) :: status
        integer, optional, intent(out) :: ierror
        integer :: value

        call mpix_f08_is_matched(request, value, status, ierror)
        flag = (value /= 0)
    end subroutine

    subroutine MPIX_Host_event_query(event, flag, ierror)
        type(MPIX_Host_event), intent(in) :: event
        logical, intent(out) :: flag
        integer, optional, intent(out) :: ierror
        integer :: value

        call mpix_f08_host_event_query(event, value, ierror)
        flag = (value /= 0)
    end subroutine

    subroutine MPIX_Halo_init_list_tags(comm, count, ranks, sendtags, &
                                        recvtags, sides, queue, halo, ierror)
        type(MPI_Comm), intent(in) :: comm
        integer, intent(in) :: count
        integer, intent(in) :: ranks(*)
        integer, intent(in) :: sendtags(*)
        integer, intent(in) :: recvtags(*)
        type(MPIX_Halo_side), intent(in) :: sides(*)
        type(MPIX_Queue), intent(in) :: queue
        type(MPIX_Halo), intent(out) :: halo
        integer, optional, intent(out) :: ierror

        call mpix_f08_halo_init_list(comm, count, ranks, sendtags, recvtags, &
                                     sides, queue, halo, ierror)
    end subroutine

    subroutine MPIX_Halo_init_list_ranks(comm, count, ranks, sides, queue, &
                                         halo, ierror)
        type(MPI_Comm), intent(in) :: comm
        integer, intent(in) :: count
        integer, intent(in) :: ranks(*)
        type(MPIX_Halo_side), intent(in) :: sides(*)
        type(MPIX_Queue), intent(in) :: queue
        type(MPIX_Halo), intent(out) :: halo
        integer, optional, intent(out) :: ierror

        call mpix_f08_halo_init_list(comm, count, ranks, sides=sides, &
                                     queue=queue, halo=halo, ierror=ierror)
    end subroutine

end module
