! The heat equation on a plate, with the module mpi_f08.
!
!   mpifort heat.f90 -O2 -o heat_f && mpiexec -n 4 ./heat_f [STEPS]
!
! The plate is cut into a grid of tiles, one for each rank. In each step a rank sends its edges to its neighbours, updates its inner
! cells while they travel (ASYNCHRONOUS tells the compiler that they do), and then its edges. The edges along the second dimension
! are array sections with gaps, passed as they are.
program heat
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  implicit none

  integer, parameter :: width = 480, height = 320
  type(MPI_Comm) :: plate
  type(MPI_Request) :: requests(8)
  integer :: rank, ranks, steps, step, tiles(2) = 0, place(2), neighbour(4), first(2), last(2), i, j
  real(real64), allocatable, asynchronous :: old(:, :), new(:, :)
  real(real64), allocatable :: keeps(:, :)
  real(real64) :: start, total, hottest, local
  character(len=32) :: argument

  call MPI_Init()
  start = MPI_Wtime()
  steps = 4000
  if (command_argument_count() >= 1) then
    call get_command_argument(1, argument)
    read (argument, *) steps
  end if

  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Dims_create(ranks, 2, tiles)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, tiles, [.false., .false.], .true., plate)
  call MPI_Comm_rank(plate, rank)
  call MPI_Cart_coords(plate, rank, 2, place)
  call MPI_Cart_shift(plate, 0, 1, neighbour(1), neighbour(2))
  call MPI_Cart_shift(plate, 1, 1, neighbour(3), neighbour(4))

  ! One row and one column more on each side: they belong to the neighbours.
  first = [width, height] * place / tiles + 1
  last = [width, height] * (place + 1) / tiles
  allocate (old(first(1) - 1:last(1) + 1, first(2) - 1:last(2) + 1), source=0.0_real64)
  allocate (keeps, source=old)
  do j = first(2), last(2)
    do i = first(1), last(1)
      local = source_at(i, j)
      old(i, j) = merge(local, 0.05_real64, local >= 0)
      keeps(i, j) = merge(0.0_real64, 0.24_real64, local >= 0 .or. i == 1 .or. i == width .or. j == 1 .or. j == height)
    end do
  end do
  new = old

  associate (l1 => first(1), u1 => last(1), l2 => first(2), u2 => last(2))
    do step = 1, steps
      call MPI_Irecv(old(l1 - 1, l2:u2), u2 - l2 + 1, MPI_REAL8, neighbour(1), 0, plate, requests(1))
      call MPI_Irecv(old(u1 + 1, l2:u2), u2 - l2 + 1, MPI_REAL8, neighbour(2), 1, plate, requests(2))
      call MPI_Irecv(old(l1:u1, l2 - 1), u1 - l1 + 1, MPI_REAL8, neighbour(3), 2, plate, requests(3))
      call MPI_Irecv(old(l1:u1, u2 + 1), u1 - l1 + 1, MPI_REAL8, neighbour(4), 3, plate, requests(4))
      call MPI_Isend(old(l1, l2:u2), u2 - l2 + 1, MPI_REAL8, neighbour(1), 1, plate, requests(5))
      call MPI_Isend(old(u1, l2:u2), u2 - l2 + 1, MPI_REAL8, neighbour(2), 0, plate, requests(6))
      call MPI_Isend(old(l1:u1, l2), u1 - l1 + 1, MPI_REAL8, neighbour(3), 3, plate, requests(7))
      call MPI_Isend(old(l1:u1, u2), u1 - l1 + 1, MPI_REAL8, neighbour(4), 2, plate, requests(8))
      call update(l1 + 1, u1 - 1, l2 + 1, u2 - 1)
      call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE)
      call update(l1, l1, l2, u2)
      if (u1 > l1) call update(u1, u1, l2, u2)
      call update(l1 + 1, u1 - 1, l2, l2)
      if (u2 > l2) call update(l1 + 1, u1 - 1, u2, u2)
      call move(old, new)
    end do
    local = sum(old(l1:u1, l2:u2))
    call MPI_Reduce(local, total, 1, MPI_REAL8, MPI_SUM, 0, plate)
    local = maxval(old(l1:u1, l2:u2))
    call MPI_Reduce(local, hottest, 1, MPI_REAL8, MPI_MAX, 0, plate)
  end associate
  if (rank == 0) then
    print '(a, i0, a, i0, a, i0, a)', 'heat: ', steps, ' steps on ', tiles(1), ' x ', tiles(2), ' tiles'
    print '(a, f9.6, a, f9.6)', 'mean temperature ', total / (width * height), ', hottest ', hottest
    print '(a, f7.2, a)', 'in ', MPI_Wtime() - start, ' s'
  end if
  call MPI_Comm_free(plate)
  call MPI_Finalize()

contains

  ! The temperature that a source keeps at (x, y), or -1 where there is none.
  pure function source_at(x, y) result(fixed)
    integer, intent(in) :: x, y
    real(real64) :: fixed
    real(real64) :: ring
    ring = hypot(x - 150.0_real64, y - 150.0_real64)
    fixed = -1
    if (ring > 62 .and. ring < 72) fixed = 1
    if (hypot(x - 350.0_real64, y - 90.0_real64) < 34) fixed = 0.85_real64
    if (ring < 9) fixed = 0
  end function

  subroutine update(from1, to1, from2, to2)
    integer, intent(in) :: from1, to1, from2, to2
    integer :: x, y
    do y = from2, to2
      do x = from1, to1
        new(x, y) = old(x, y) + keeps(x, y) * (old(x - 1, y) + old(x + 1, y) + old(x, y - 1) + old(x, y + 1) - 4 * old(x, y))
      end do
    end do
  end subroutine

  subroutine move(a, b)
    real(real64), allocatable, asynchronous, intent(inout) :: a(:, :), b(:, :)
    real(real64), allocatable, asynchronous :: held(:, :)
    call move_alloc(a, held)
    call move_alloc(b, a)
    call move_alloc(held, b)
  end subroutine
end program
