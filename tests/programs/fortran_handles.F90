! Handles and statuses between Fortran and C, and attributes that one language sets and the other gets.
program fortran_handles
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function c_sum(comm, datatype, op, value) bind(C) result(total)
      import :: c_int
      integer(c_int), value :: comm, datatype, op, value
      integer(c_int) :: total
    end function
    function c_request(request) bind(C) result(new)
      import :: c_int
      integer(c_int), value :: request
      integer(c_int) :: new
    end function
    function c_tag(status) bind(C) result(tag)
      import :: c_int, MPI_Status
      type(MPI_Status), intent(in) :: status
      integer(c_int) :: tag
    end function
    function c_attribute(comm, keyval, set) bind(C) result(value)
      import :: c_int, c_intptr_t
      integer(c_int), value :: comm, keyval, set
      integer(c_intptr_t) :: value
    end function
    function c_new_type() bind(C) result(datatype)
      import :: c_int
      integer(c_int) :: datatype
    end function
    function c_booleans() bind(C) result(good)
      import :: c_int
      integer(c_int) :: good
    end function
  end interface
  integer :: rank, ranks, keyval, got, size
  type(MPI_Comm) :: copy
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Datatype) :: datatype
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  call equal(c_sum(copy%MPI_VAL, MPI_INTEGER%MPI_VAL, MPI_SUM%MPI_VAL, rank), ranks * (ranks - 1) / 2, 'a communicator in C')
  call MPI_Irecv(got, 1, MPI_INTEGER, rank, 6, copy, request)
  call MPI_Send(rank + 40, 1, MPI_INTEGER, rank, 6, copy)
  request%MPI_VAL = c_request(request%MPI_VAL)
  call check(request == MPI_REQUEST_NULL, 'a request that C waits for')
  call equal(got, rank + 40, 'what it received')
  call MPI_Send(got, 1, MPI_INTEGER, rank, 9, copy)
  call MPI_Recv(got, 1, MPI_INTEGER, rank, MPI_ANY_TAG, copy, status)
  call equal(c_tag(status), 9, 'a status in C')
  datatype%MPI_VAL = c_new_type()
  call MPI_Type_size(datatype, size)
  call equal(size, 24, 'a datatype of C')
  call MPI_Type_free(datatype)

  ! Set by Fortran, C gets the address of the integer.
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(copy, keyval, 77_MPI_ADDRESS_KIND)
  call check(c_attribute(copy%MPI_VAL, keyval, 0) == 77, 'an attribute that Fortran has set')
  ! Set by C, Fortran gets the address that C has set.
  value = c_attribute(copy%MPI_VAL, keyval, 1)
  call check(value /= 0, 'the address that C has set')
  block
    integer(kind=MPI_ADDRESS_KIND) :: seen
    call MPI_Comm_get_attr(copy, keyval, seen, flag)
    call check(flag .and. seen == value, 'an attribute that C has set')
  end block
  call MPI_Comm_free_keyval(keyval)
  call MPI_Comm_free(copy)
  call equal(c_booleans(), 1, 'what C is told of LOGICAL')
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'fortran_handles: ok'
  call MPI_Finalize()

contains
#include "fortran_check.inc"
end program
