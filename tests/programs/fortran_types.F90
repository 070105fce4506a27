! Collective operations with each of the Fortran datatypes.
program fortran_types
  use mpi_f08
  use, intrinsic :: iso_fortran_env
  implicit none
  integer :: rank, ranks, n

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  n = ranks * (ranks + 1) / 2
  call integers
  call reals
  call complexes
  call logicals
  call characters
  call pairs
  call all_forms
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'fortran_types: ok'
  call MPI_Finalize()

contains
#include "fortran_check.inc"

  integer function factorial(number)
    integer, intent(in) :: number
    integer :: i
    factorial = product([(i, i = 1, number)])
  end function

  subroutine integers
    integer :: bits(3)
#define KIND integer
#define TYPE MPI_INTEGER
#define NAME 'MPI_INTEGER'
#include "fortran_reductions.inc"
#define KIND integer(int8)
#define TYPE MPI_INTEGER1
#define NAME 'MPI_INTEGER1'
#include "fortran_reductions.inc"
#define KIND integer(int16)
#define TYPE MPI_INTEGER2
#define NAME 'MPI_INTEGER2'
#include "fortran_reductions.inc"
#define KIND integer(int32)
#define TYPE MPI_INTEGER4
#define NAME 'MPI_INTEGER4'
#include "fortran_reductions.inc"
#define KIND integer(int64)
#define TYPE MPI_INTEGER8
#define NAME 'MPI_INTEGER8'
#include "fortran_reductions.inc"
#define KIND integer(MPI_ADDRESS_KIND)
#define TYPE MPI_AINT
#define NAME 'MPI_AINT'
#include "fortran_reductions.inc"
#define KIND integer(MPI_OFFSET_KIND)
#define TYPE MPI_OFFSET
#define NAME 'MPI_OFFSET'
#include "fortran_reductions.inc"
#define KIND integer(MPI_COUNT_KIND)
#define TYPE MPI_COUNT
#define NAME 'MPI_COUNT'
#include "fortran_reductions.inc"
    bits = [ibset(0, rank), 5, rank]
    call MPI_Allreduce(MPI_IN_PLACE, bits(1), 1, MPI_INTEGER, MPI_BOR, MPI_COMM_WORLD)
    call equal(bits(1), 2**ranks - 1, 'MPI_BOR')
    call MPI_Allreduce(MPI_IN_PLACE, bits(2), 1, MPI_INTEGER, MPI_BAND, MPI_COMM_WORLD)
    call equal(bits(2), 5, 'MPI_BAND')
    call MPI_Allreduce(MPI_IN_PLACE, bits(3), 1, MPI_INTEGER, MPI_BXOR, MPI_COMM_WORLD)
    call equal(bits(3), reduced_xor(), 'MPI_BXOR')
  end subroutine

  integer function reduced_xor()
    integer :: i
    reduced_xor = 0
    do i = 0, ranks - 1
      reduced_xor = ieor(reduced_xor, i)
    end do
  end function

  subroutine reals
#define KIND real
#define TYPE MPI_REAL
#define NAME 'MPI_REAL'
#include "fortran_reductions.inc"
#define KIND double precision
#define TYPE MPI_DOUBLE_PRECISION
#define NAME 'MPI_DOUBLE_PRECISION'
#include "fortran_reductions.inc"
#define KIND real(real32)
#define TYPE MPI_REAL4
#define NAME 'MPI_REAL4'
#include "fortran_reductions.inc"
#define KIND real(real64)
#define TYPE MPI_REAL8
#define NAME 'MPI_REAL8'
#include "fortran_reductions.inc"
#ifdef __GFORTRAN__
#define KIND real(real128)
#define TYPE MPI_REAL16
#define NAME 'MPI_REAL16'
#include "fortran_reductions.inc"
#endif
  end subroutine

  subroutine complexes
#define KIND complex
#define TYPE MPI_COMPLEX
#define NAME 'MPI_COMPLEX'
#include "fortran_complex_reductions.inc"
#define KIND complex(real64)
#define TYPE MPI_DOUBLE_COMPLEX
#define NAME 'MPI_DOUBLE_COMPLEX'
#include "fortran_complex_reductions.inc"
#define KIND complex(real32)
#define TYPE MPI_COMPLEX8
#define NAME 'MPI_COMPLEX8'
#include "fortran_complex_reductions.inc"
#define KIND complex(real64)
#define TYPE MPI_COMPLEX16
#define NAME 'MPI_COMPLEX16'
#include "fortran_complex_reductions.inc"
  end subroutine

  subroutine logicals
#define KIND logical
#define TYPE MPI_LOGICAL
#define NAME 'MPI_LOGICAL'
#include "fortran_logical_reductions.inc"
#define KIND logical(1)
#define TYPE MPI_LOGICAL1
#define NAME 'MPI_LOGICAL1'
#include "fortran_logical_reductions.inc"
#define KIND logical(2)
#define TYPE MPI_LOGICAL2
#define NAME 'MPI_LOGICAL2'
#include "fortran_logical_reductions.inc"
#define KIND logical(4)
#define TYPE MPI_LOGICAL4
#define NAME 'MPI_LOGICAL4'
#include "fortran_logical_reductions.inc"
#define KIND logical(8)
#define TYPE MPI_LOGICAL8
#define NAME 'MPI_LOGICAL8'
#include "fortran_logical_reductions.inc"
  end subroutine

  subroutine characters
    character(len=6) :: word, words(ranks)
    integer :: bytes
    call MPI_Type_size(MPI_CHARACTER, bytes)
    call equal(bytes, 1, 'MPI_CHARACTER')
    write (word, '(a, i2.2)') 'rank', rank
    call MPI_Allgather(word, 6, MPI_CHARACTER, words, 6, MPI_CHARACTER, MPI_COMM_WORLD)
    write (word, '(a, i2.2)') 'rank', ranks - 1
    call check(words(ranks) == word .and. words(1) == 'rank00', 'MPI_Allgather of words')
    call MPI_Bcast(word(5:6), 2, MPI_CHARACTER, 0, MPI_COMM_WORLD)
    call check(word(1:4) == 'rank', 'a part of a word')
  end subroutine

  subroutine pairs
    integer :: two(2), most(2)
    real :: near(2), nearest(2)
    double precision :: far(2), farthest(2)
    two = [mod(rank * 3, 5), rank]
    call MPI_Allreduce(two, most, 1, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD)
    call check(all(most == 0), 'MPI_2INTEGER')
    near = [real(abs(rank - ranks / 2)), real(rank)]
    call MPI_Allreduce(near, nearest, 1, MPI_2REAL, MPI_MINLOC, MPI_COMM_WORLD)
    call check(nearest(1) < 0.5 .and. nint(nearest(2)) == ranks / 2, 'MPI_2REAL')
    far = [dble(rank) / 8, dble(rank)]
    call MPI_Allreduce(far, farthest, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD)
    call check(nint(farthest(2)) == ranks - 1, 'MPI_2DOUBLE_PRECISION')
  end subroutine

  ! Every collective once, with counts, places and datatypes for each rank.
  subroutine all_forms
    integer, asynchronous :: block(ranks), swapped(ranks)
    integer :: counts(ranks), places(ranks), i, mine(rank + 1), total, sums(ranks), large(n), one
    integer(kind=MPI_COUNT_KIND) :: large_counts(ranks)
    integer(kind=MPI_ADDRESS_KIND) :: large_places(ranks)
    type(MPI_Datatype) :: types(ranks)
    type(MPI_Request) :: request
    counts = [(i, i = 1, ranks)]
    places = [(i * (i - 1) / 2, i = 1, ranks)]
    mine = rank
    large = -1
    call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, large, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
    call check(large(n) == ranks - 1 .and. large(1) == 0, 'MPI_Allgatherv')
    large_counts = counts
    large_places = places
    large = -1
    call MPI_Gatherv(mine, int(rank + 1, MPI_COUNT_KIND), MPI_INTEGER, large, large_counts, large_places, MPI_INTEGER, 0, &
      MPI_COMM_WORLD)
    if (rank == 0) call check(large(n) == ranks - 1, 'MPI_Gatherv with large counts')
    mine = -2
    if (rank == 0) large = [(i, i = 1, n)]
    call MPI_Scatterv(large, counts, places, MPI_INTEGER, mine, rank + 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call equal(mine(1), places(rank + 1) + 1, 'MPI_Scatterv')
    block = [(100 * rank + i, i = 0, ranks - 1)]
    call MPI_Alltoall(block, 1, MPI_INTEGER, swapped, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(swapped == [(100 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoall')
    counts = 1
    places = [(i, i = 0, ranks - 1)]
    swapped = -1
    call MPI_Ialltoallv(block, counts, places, MPI_INTEGER, swapped, counts, places, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(swapped == [(100 * i + rank, i = 0, ranks - 1)]), 'MPI_Ialltoallv')
    types = MPI_INTEGER
    places = 4 * places
    swapped = -1
    call MPI_Alltoallw(block, counts, places, types, swapped, counts, places, types, MPI_COMM_WORLD)
    call check(all(swapped == [(100 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoallw')
    call MPI_Alltoallw(MPI_IN_PLACE, [0], [0], [MPI_DATATYPE_NULL], swapped, counts, places, types, MPI_COMM_WORLD)
    call check(all(swapped == block), 'MPI_Alltoallw in place')
    block = 1
    call MPI_Reduce_scatter(block, one, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call equal(one, ranks, 'MPI_Reduce_scatter')
    call MPI_Reduce_scatter_block(block, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call equal(one, ranks, 'MPI_Reduce_scatter_block')
    call MPI_Scan(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call equal(total, (rank + 1) * (rank + 2) / 2, 'MPI_Scan')
    call MPI_Reduce(block, sums, ranks, MPI_INTEGER, MPI_SUM, ranks - 1, MPI_COMM_WORLD)
    if (rank == ranks - 1) call check(all(sums == ranks), 'MPI_Reduce')
    call neighbors
  end subroutine

  subroutine neighbors
    type(MPI_Comm) :: line
    type(MPI_Datatype) :: types(2)
    integer :: got(2), sent(2), expected(2)
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., line)
    sent = [rank, -rank]
    types = MPI_INTEGER
    places = [0, 4]
    call MPI_Neighbor_alltoallw(sent, [1, 1], places, types, got, [1, 1], places, types, line)
    expected = [-mod(rank + ranks - 1, ranks), mod(rank + 1, ranks)]
    call check(all(got == expected), 'MPI_Neighbor_alltoallw')
    call MPI_Comm_free(line)
  end subroutine
end program
