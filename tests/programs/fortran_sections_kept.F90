! Array sections with gaps that no datatype describes, as buffers of operations that go on after the call: the library keeps a
! copy until they are complete, and brings back what has come, and nothing beside it.
program fortran_sections_kept
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, previous
  integer, asynchronous :: grid(6, 40)
  integer :: before(6, 40)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call check(MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED')
  call check(MPI_ASYNC_PROTECTS_NONBLOCKING, 'MPI_ASYNC_PROTECTS_NONBLOCKING')
  call fill
  call reductions(grid)
  call fill
  call gathers
  call fill
  call exchanges
  call fill
  call messages
  call fill
  call persistent
  call fill
  call partitions
  call fill
  call split_file
  call fill
  call windows
  call sentinels
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'fortran_sections_kept: ok'
  call MPI_Finalize()

contains
#include "fortran_check.inc"

  subroutine fill
    integer :: i
    grid = reshape([(1000 * rank + i, i = 1, size(grid))], shape(grid))
    before = grid
  end subroutine

  ! Of assumed shape, so that the compiler does not know that the whole is contiguous.
  subroutine reductions(array)
    integer, asynchronous, intent(inout) :: array(:, :)
    integer :: sums(4), theirs(2, 2 * ranks), i
    type(MPI_Request) :: requests(3)
    ! From one section into another, and in place; meanwhile what lies between the elements changes.
    call MPI_Iallreduce(array(1:5:2, 1), array(2:6:2, 1), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(1))
    call MPI_Iallreduce(MPI_IN_PLACE, array(1:6:3, 3:4), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2))
    array(2:3, 3:4) = -7
    array(1, 5) = -8
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    before(2:6:2, 1) = 1000 * (ranks - 1) + before(1:5:2, 1) - 1000 * rank
    sums = reshape(before(1:6:3, 3:4), [4])
    sums = ranks * (sums - 1000 * rank) + 500 * ranks * (ranks - 1)
    before(1:6:3, 3:4) = reshape(sums, [2, 2])
    before(2:3, 3:4) = -7
    before(1, 5) = -8
    call check(all(array == before), 'MPI_Iallreduce into sections')
    ! At the root only.
    call MPI_Ireduce(array(6, 10:12), array(5, 10:12), 3, MPI_INTEGER, MPI_MIN, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (rank == 0) before(5, 10:12) = before(6, 10:12)
    call check(all(array == before), 'MPI_Ireduce')
    theirs = reshape([(10 * rank + i, i = 1, 4 * ranks)], shape(theirs))
    call MPI_Ireduce_scatter_block(theirs(1, :), array(3:6:3, 20), 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    before(3:6:3, 20) = [4 * rank + 1, 4 * rank + 3] * ranks + 5 * ranks * (ranks - 1)
    call check(all(array == before), 'MPI_Ireduce_scatter_block')
    call MPI_Iexscan(array(1:5:4, 30), array(2:6:4, 30), 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (rank > 0) before(2:6:4, 30) = before(1:5:4, 30) - 1000
    call check(all(array == before), 'MPI_Iexscan')
  end subroutine

  subroutine gathers
    integer :: i, counts(ranks), places(ranks), root
    type(MPI_Request) :: request
    root = ranks - 1
    ! Two elements of each rank, one behind the other in the section.
    call MPI_Igather(grid(1:4:3, 1), 2, MPI_INTEGER, grid(2:6:4, 1:ranks), 2, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    grid(1, 2) = -1
    before(1, 2) = -1
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == root) then
      do i = 1, ranks
        before(2:6:4, i) = 1000 * (i - 1) + [1, 4]
      end do
    end if
    call check(all(grid == before), 'MPI_Igather')
    ! With holes in the section, which stay, although they change while the operation is under way.
    counts = 1
    places = [(2 * (i - 1), i = 1, ranks)]
    call MPI_Iallgatherv(grid(3, 10), 1, MPI_INTEGER, grid(5, 20:39), counts, places, MPI_INTEGER, MPI_COMM_WORLD, request)
    grid(5, 21) = -3
    before(5, 21) = -3
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    do i = 1, ranks
      before(5, 20 + places(i)) = 1000 * (i - 1) + 3 + 6 * 9
    end do
    call check(all(grid == before), 'MPI_Iallgatherv')
    call MPI_Iscatter(grid(6, 1:2 * ranks), 2, MPI_INTEGER, grid(4:5, 40), 2, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == root) then
      before(4:5, 40) = before(6, 2 * rank + 1:2 * rank + 2)
      call check(all(grid == before), 'MPI_Iscatter')
    end if
  end subroutine

  subroutine exchanges
    integer :: i, counts(ranks), places(ranks)
    integer, asynchronous :: came(3, ranks)
    type(MPI_Datatype) :: types(ranks)
    type(MPI_Request) :: request
    call MPI_Ialltoall(grid(1:6:5, 1:ranks), 2, MPI_INTEGER, grid(2:3, 1:2 * ranks:2), 2, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    do i = 1, ranks
      before(2:3, 2 * i - 1) = 1000 * (i - 1) + 6 * rank + [1, 6]
    end do
    call check(all(grid == before), 'MPI_Ialltoall')
    came = -1
    counts = 1
    places = [(4 * (i - 1), i = 1, ranks)]
    types = MPI_INTEGER
    call MPI_Ialltoallw(grid(4, 1:ranks), counts, places, types, came(2, :), counts, places, types, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    do i = 1, ranks
      call check(all(came(:, i) == [-1, 1000 * (i - 1) + 6 * rank + 4, -1]), 'MPI_Ialltoallw')
    end do
  end subroutine

  ! Datatypes with gaps, of sections with gaps.
  subroutine messages
    integer :: flag_count
    logical :: flag
    type(MPI_Datatype) :: wide
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, wide)
    call MPI_Type_commit(wide)
    call MPI_Irecv(grid(2, 1:9:2), 1, wide, previous, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(grid(2, 3:11:2), 1, wide, previous, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Send(grid(1, 1:9:2), 1, wide, next, 2, MPI_COMM_WORLD)
    call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
    ! Both receives have the whole of their sections copied, and each brings its own elements back.
    before(2, 3) = 1000 * previous + 1
    before(2, 7) = 1000 * previous + 1 + 24
    call check(all(grid == before), 'the second of two receives')
    call MPI_Isend(grid(1, 2:10:2), 1, wide, next, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Wait(requests(1), status)
    call MPI_Get_count(status, wide, flag_count)
    call equal(flag_count, 1, 'the count of a kept receive')
    before(2, 1) = 1000 * previous + 7
    before(2, 5) = 1000 * previous + 7 + 24
    call check(all(grid == before), 'the first of two receives')
    call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
    ! One that is cancelled, and one whose status is looked at before it is completed.
    call MPI_Irecv(grid(3, 1:9:2), 1, wide, previous, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Cancel(requests(1))
    call MPI_Wait(requests(1), status)
    call MPI_Test_cancelled(status, flag)
    call check(flag, 'a kept receive that is cancelled')
    call check(all(grid == before), 'what a cancelled receive leaves')
    call MPI_Irecv(grid(3, 1:9:2), 1, wide, previous, 4, MPI_COMM_WORLD, requests(1))
    call MPI_Send([-5, -6], 2, MPI_INTEGER, next, 4, MPI_COMM_WORLD)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(requests(1), flag, MPI_STATUS_IGNORE)
    end do
    before(3, 1:5:4) = [-5, -6]
    call check(all(grid == before), 'a kept receive whose status was asked for')
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call MPI_Type_free(wide)
  end subroutine

  subroutine persistent
    integer :: i, rank_of
    type(MPI_Request) :: requests(2)
    call MPI_Allreduce_init(grid(1, 1:3), grid(2, 1:3), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Allgather_init(grid(3:5:2, 1), 2, MPI_INTEGER, grid(1:6:5, 11:10 + ranks), 2, MPI_INTEGER, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(2))
    do i = 1, 3
      grid(1, 1:3) = rank + [i, 2 * i, 3 * i]
      grid(3:5:2, 1) = 10 * rank + i
      grid(2:5, 11) = -i
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(grid(2, 1:3) == ranks * [i, 2 * i, 3 * i] + ranks * (ranks - 1) / 2), 'MPI_Allreduce_init')
      call check(all(grid(1, 11:10 + ranks) == [(10 * rank_of, rank_of = 0, ranks - 1)] + i), 'MPI_Allgather_init')
      call check(all(grid(6, 11:10 + ranks) == grid(1, 11:10 + ranks)), 'the second elements')
      call check(all(grid(2:5, 11) == -i), 'what lies between them')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine partitions
    integer :: i, round
    logical :: flag
    type(MPI_Request) :: sending, receiving
    ! Four partitions of three elements: they begin in the middle of columns.
    call MPI_Precv_init(grid(2:6:4, 21:26), 4, 3_MPI_COUNT_KIND, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &
      receiving)
    call MPI_Psend_init(grid(1:5:4, 1:6), 4, 3_MPI_COUNT_KIND, MPI_INTEGER, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, sending)
    do round = 1, 2
      call MPI_Start(receiving)
      call MPI_Start(sending)
      do i = 3, 0, -1
        call set(3 * i, round)
        call MPI_Pready(i, sending)
      end do
      flag = .false.
      do while (.not. flag)
        call MPI_Parrived(receiving, 1, flag)
      end do
      call equal(grid(6, 22), 1000 * previous + 10 * round + 3, 'the first element of a partition that has arrived')
      call MPI_Wait(sending, MPI_STATUS_IGNORE)
      call MPI_Wait(receiving, MPI_STATUS_IGNORE)
      call check(all(reshape(grid(2:6:4, 21:26), [12]) == 1000 * previous + 10 * round + [(i, i = 0, 11)]), 'partitions')
      call check(all(grid(3:5, 21:26) == before(3:5, 21:26)), 'what lies between the elements of partitions')
    end do
    call MPI_Request_free(sending)
    call MPI_Request_free(receiving)
  end subroutine

  ! Three elements of the section that is sent, from `first` on, counted from 0.
  subroutine set(first, round)
    integer, intent(in) :: first, round
    integer :: i
    do i = first, first + 2
      grid(1 + 4 * mod(i, 2), 1 + i / 2) = 1000 * rank + 10 * round + i
    end do
  end subroutine

  subroutine split_file
    type(MPI_Datatype) :: wide
    type(MPI_File) :: file
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: count
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, wide)
    call MPI_Type_commit(wide)
    call MPI_File_open(MPI_COMM_WORLD, 'fortran_sections_kept.data', MPI_MODE_CREATE + MPI_MODE_RDWR + &
      MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_write_at_all_begin(file, 8_MPI_OFFSET_KIND * rank, grid(1, 1:5:2), 1, wide)
    call MPI_File_write_at_all_end(file, grid(1, 1:5:2), status)
    call MPI_Get_count(status, wide, count)
    call equal(count, 1, 'the count of a split access')
    call MPI_File_sync(file)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_File_sync(file)
    call MPI_File_read_at_all_begin(file, 8_MPI_OFFSET_KIND * next, grid(2, 1:5:2), 1, wide)
    grid(2, 3) = -9
    call MPI_File_read_at_all_end(file, grid(2, 1:5:2), MPI_STATUS_IGNORE)
    before(2, 1:5:4) = 1000 * next + [1, 25]
    before(2, 3) = -9
    call check(all(grid == before), 'a split access')
    call MPI_File_iread_at(file, 8_MPI_OFFSET_KIND * previous, grid(4, 1:5:2), 1, wide, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    before(4, 1:5:4) = 1000 * previous + [1, 25]
    call check(all(grid == before), 'MPI_File_iread_at')
    call MPI_File_close(file)
    call MPI_Type_free(wide)
  end subroutine

  subroutine windows
    integer, asynchronous :: shared(8)
    type(MPI_Datatype) :: wide
    type(MPI_Request) :: request
    type(MPI_Win) :: window
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, wide)
    call MPI_Type_commit(wide)
    shared = 0
    call MPI_Win_create(shared, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Put(grid(1, 1:5:2), 1, wide, next, 0_MPI_ADDRESS_KIND, 2, MPI_INTEGER, window)
    call MPI_Accumulate(grid(1, 1:5:2), 1, wide, next, 2_MPI_ADDRESS_KIND, 2, MPI_INTEGER, MPI_SUM, window)
    call MPI_Win_fence(0, window)
    call check(all(shared == [1000 * previous + [1, 25], 1000 * previous + [1, 25], 0, 0, 0, 0]), 'MPI_Put and MPI_Accumulate')
    call MPI_Get(grid(2, 1:5:2), 1, wide, next, 0_MPI_ADDRESS_KIND, 2, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    before(2, 1:5:4) = 1000 * rank + [1, 25]
    call check(all(grid == before), 'MPI_Get')
    call MPI_Win_lock_all(0, window)
    call MPI_Rget(grid(3, 1:5:2), 1, wide, next, 2_MPI_ADDRESS_KIND, 2, MPI_INTEGER, window, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    before(3, 1:5:4) = 1000 * rank + [1, 25]
    call check(all(grid == before), 'MPI_Rget')
    call MPI_Fetch_and_op(grid(4, 1:2), grid(5, 1:2), MPI_INTEGER, next, 4_MPI_ADDRESS_KIND, MPI_SUM, window)
    call MPI_Win_flush_all(window)
    before(5, 1) = 0
    call check(all(grid == before), 'MPI_Fetch_and_op')
    call MPI_Win_unlock_all(window)
    call MPI_Win_free(window)
    call MPI_Type_free(wide)
  end subroutine

  ! Variables whose addresses say something, scalars, and arrays without gaps go through as they are.
  subroutine sentinels
    integer, asynchronous :: one, other(2), came(2)
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    type(MPI_Datatype) :: absolute
    type(MPI_Request) :: requests(2)
    one = rank
    call MPI_Get_address(one, places(1))
    call MPI_Get_address(other, places(2))
    other = [10 * rank, 10 * rank + 1]
    call MPI_Type_create_hindexed(2, [1, 2], places, MPI_INTEGER, absolute)
    call MPI_Type_commit(absolute)
    call MPI_Irecv(came, 2, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(MPI_BOTTOM, 1, absolute, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Recv(grid(6, 1:3), 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(grid(6, 1:3) == [rank, 10 * rank, 10 * rank + 1]), 'MPI_BOTTOM')
    call MPI_Send(other, 2, MPI_INTEGER, next, 2, MPI_COMM_WORLD)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(came == 10 * previous + [0, 1]), 'an array without gaps')
    call MPI_Iallreduce(MPI_IN_PLACE, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call equal(one, ranks * (ranks - 1) / 2, 'a scalar in place')
    ! Elements whose values stay the same, and an empty section.
    call MPI_Iallreduce(MPI_IN_PLACE, grid(6:1:-2, 5), 0, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Iallreduce(MPI_IN_PLACE, grid(5:4, 5), 0, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Type_free(absolute)
  end subroutine
end program
