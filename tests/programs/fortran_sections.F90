! Array sections with gaps as buffers: mpi_f08 is told their shapes.
program fortran_sections
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, previous
  integer, asynchronous :: cube(6, 5, 4)
  integer :: before(6, 5, 4)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call fill
  call blocking
  call fill
  call nonblocking
  call fill
  call parts
  call fill
  call collectives
  call fill
  call one_sided
  call file
  call large_counts
  call passed(cube(2:5:3, :, 1:4:3))
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'fortran_sections: ok'
  call MPI_Finalize()

contains
#include "fortran_check.inc"

  subroutine fill
    integer :: i
    cube = reshape([(1000 * rank + i, i = 1, size(cube))], shape(cube))
    before = cube
  end subroutine

  ! The cube of another rank.
  function of(other) result(theirs)
    integer, intent(in) :: other
    integer :: theirs(6, 5, 4), i
    theirs = reshape([(1000 * other + i, i = 1, size(theirs))], shape(theirs))
  end function

  subroutine blocking
    integer :: theirs(6, 5, 4), count
    type(MPI_Status) :: status
    theirs = of(previous)
    ! Every second element of two dimensions, into other places; the others must stay.
    call MPI_Sendrecv(cube(1:5:2, :, 1), 15, MPI_INTEGER, next, 1, cube(2:6:2, :, 4), 15, MPI_INTEGER, previous, 1, &
      MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call equal(count, 15, 'MPI_Get_count')
    call check(all(cube(2:6:2, :, 4) == theirs(1:5:2, :, 1)), 'what came into the section')
    before(2:6:2, :, 4) = theirs(1:5:2, :, 1)
    call check(all(cube == before), 'what is beside the section')
    ! Backwards.
    call MPI_Sendrecv(cube(6:1:-1, 1, 1), 6, MPI_INTEGER, rank, 1, cube(1, 5:1:-1, 2), 5, MPI_INTEGER, MPI_PROC_NULL, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Recv(cube(6:1:-1, 2, 2), 6, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(cube(6:1:-1, 2, 2) == cube(6:1:-1, 1, 1)), 'a section that runs backwards')
  end subroutine

  subroutine nonblocking
    integer :: theirs(6, 5, 4), i
    type(MPI_Request) :: requests(4)
    theirs = of(previous)
    call MPI_Irecv(cube(6, 1:5, 1:4), 20, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(cube(2:4, 1:5:4, 2:4:2), 12, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(cube(1, 1:5, 1:4), 20, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(cube(1:3, 2:3, 1:4:3), 12, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(4))
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
    before(6, :, :) = theirs(1, :, :)
    before(2:4, 1:5:4, 2:4:2) = theirs(1:3, 2:3, 1:4:3)
    call check(all(cube == before), 'nonblocking sections')
    call MPI_Recv_init(cube(5, :, 1), 5, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(cube(4, :, 1), 5, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2))
    do i = 1, 2
      cube(4, :, 1) = rank + 10 * i
      call MPI_Startall(2, requests(1:2))
      call MPI_Waitall(2, requests(1:2), MPI_STATUSES_IGNORE)
      call check(all(cube(5, :, 1) == previous + 10 * i), 'a persistent section')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine parts
    complex :: numbers(4, 4), got(3)
    double precision :: halves(8, 2)
    integer :: some(7), i
    type(MPI_Datatype) :: pair, wide
    type(MPI_Request) :: request
    ! Fewer elements than the section has: whole columns of it and a rest.
    call MPI_Isend(cube(1:5:2, :, 1), 7, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, request)
    call MPI_Recv(some, 7, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(some == [cube(1:5:2, 1, 1), cube(1:5:2, 2, 1), cube(1, 3, 1)]), 'a part of a section')
    ! Two datatypes to an element.
    numbers = reshape([(cmplx(i, -i), i = 1, 16)], [4, 4])
    call MPI_Sendrecv(numbers(2, 1:3), 6, MPI_REAL, rank, 1, got, 3, MPI_COMPLEX, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(abs(got - [numbers(2, 1), numbers(2, 2), numbers(2, 3)]) < 1e-6), 'two reals to a complex')
    ! A datatype of two elements, and one with gaps of its own: these are copied.
    halves = reshape([(dble(i), i = 1, 16)], [8, 2])
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, pair)
    call MPI_Type_commit(pair)
    call MPI_Sendrecv(halves(1:8:2, 1), 2, pair, rank, 1, halves(2:8:2, 2), 4, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(all(nint(halves(:, 2)) == [9, 1, 11, 3, 13, 5, 15, 7]), 'a datatype of two elements')
    call MPI_Type_free(pair)
    call MPI_Type_vector(2, 1, 2, MPI_DOUBLE_PRECISION, wide)
    call MPI_Type_commit(wide)
    call MPI_Sendrecv(halves(1:7:2, 1), 1, wide, rank, 1, halves(1:2, 2), 2, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(all(nint(halves(1:2, 2)) == [1, 5]), 'a datatype with gaps')
    call MPI_Type_free(wide)
  end subroutine

  subroutine collectives
    integer, asynchronous :: all_of(2, 3, ranks)
    integer :: sums(3), i, root
    type(MPI_Request) :: request
    root = ranks - 1
    call MPI_Bcast(cube(3, :, 2), 5, MPI_INTEGER, root, MPI_COMM_WORLD)
    i = 1000 * (root - rank)
    call check(all(cube(3, :, 2) == before(3, :, 2) + i), 'MPI_Bcast of a section')
    before(3, :, 2) = cube(3, :, 2)
    call check(all(cube == before), 'what is beside it')
    call MPI_Ibcast(cube(4, :, 2), 5, MPI_INTEGER, root, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(cube(4, :, 2) == before(4, :, 2) + i), 'MPI_Ibcast of a section')
    all_of = -1
    call MPI_Allgather(cube(1:5:2, 1, 1), 3, MPI_INTEGER, all_of(2, :, :), 3, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(all_of(1, :, :) == -1), 'what is beside the gathered elements')
    do i = 1, ranks
      call check(all(all_of(2, :, i) == 1000 * (i - 1) + [1, 3, 5]), 'MPI_Allgather into a section')
    end do
    call MPI_Allreduce(cube(1:5:2, 1, 1), sums, 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(all(sums == 1000 * (ranks - 1) + [1, 3, 5]), 'MPI_Allreduce of a section')
    call MPI_Allreduce(MPI_IN_PLACE, cube(1:5:2, 1, 1), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(all(cube(1:5:2, 1, 1) == sums) .and. all(cube(2:6:2, 1, 1) == before(2:6:2, 1, 1)), 'in a section, in place')
  end subroutine

  subroutine one_sided
    integer, asynchronous :: shared(10)
    integer :: i
    type(MPI_Win) :: window
    shared = -1
    call MPI_Win_create(shared, 40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Put(cube(1, :, 1), 5, MPI_INTEGER, next, 2_MPI_ADDRESS_KIND, 5, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call check(all(shared == [-1, -1, (1000 * previous + 1 + 6 * i, i = 0, 4), -1, -1, -1]), 'MPI_Put of a section')
    call MPI_Win_free(window)
  end subroutine

  subroutine file
    type(MPI_File) :: handle
    integer :: got(5)
    call MPI_File_open(MPI_COMM_SELF, 'fortran_sections.' // achar(iachar('a') + mod(rank, 26)), &
      MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, handle)
    call MPI_File_write_at(handle, 0_MPI_OFFSET_KIND, cube(2, :, 3), 5, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_read_at(handle, 0_MPI_OFFSET_KIND, got, 5, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(got == cube(2, :, 3)), 'a section in a file')
    call MPI_File_close(handle)
  end subroutine

  subroutine large_counts
    integer :: row(5)
    integer(kind=MPI_COUNT_KIND) :: count
    type(MPI_Status) :: status
    call MPI_Sendrecv(cube(2, :, 2), 5_MPI_COUNT_KIND, MPI_INTEGER, rank, 0, row, 5_MPI_COUNT_KIND, MPI_INTEGER, rank, 0, &
      MPI_COMM_WORLD, status)
    call check(all(row == cube(2, :, 2)), 'a section with a large count')
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check(count == 5, 'MPI_Get_count with a large count')
  end subroutine

  ! Sections, arrays and scalars as what a procedure was given.
  subroutine passed(section)
    integer, intent(inout) :: section(:, :, :)
    integer :: got(20), one
    call MPI_Sendrecv(section, 20, MPI_INTEGER, rank, 0, got, 20, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(got == reshape(section, [20])), 'an array that has gaps where it came from')
    call MPI_Sendrecv(section(1, 1, 1), 1, MPI_INTEGER, rank, 0, one, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call equal(one, section(1, 1, 1), 'an element')
    call MPI_Sendrecv(got + 1, 20, MPI_INTEGER, rank, 0, section, 20, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(all(got + 1 == reshape(section, [20])), 'an expression')
  end subroutine
end program
