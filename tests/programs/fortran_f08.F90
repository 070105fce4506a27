! The module mpi_f08: handles and statuses with types of their own, and no error code where nobody asks for one.
module callbacks
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: deleted = 0, freed = 0, raised = 0, count_of_large = 0, converted = 0
  type(MPI_Comm) :: raised_on
contains
  subroutine product(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    real(c_double), pointer :: in(:), inout(:)
    if (datatype /= MPI_DOUBLE_PRECISION) call MPI_Abort(MPI_COMM_WORLD, 98)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = in * inout
  end subroutine

  subroutine large_sum(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    if (datatype /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 98)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = in + inout
    count_of_large = count_of_large + 1
  end subroutine

  subroutine copy_type(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    flag = oldtype /= MPI_DATATYPE_NULL .and. type_keyval /= MPI_KEYVAL_INVALID
    attribute_val_out = attribute_val_in * extra_state
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_type(datatype, type_keyval, attribute_val, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deleted = deleted + int(attribute_val)
    ierror = MPI_SUCCESS
    if (datatype == MPI_DATATYPE_NULL .or. type_keyval == MPI_KEYVAL_INVALID .or. extra_state /= 3) ierror = MPI_ERR_OTHER
  end subroutine

  subroutine note(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    raised_on = comm
    raised = error_code
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, 2_MPI_COUNT_KIND, ierror)
    call MPI_Status_set_cancelled(status, .true.)
    status%MPI_TAG = int(extra_state)
    status%MPI_SOURCE = 0
  end subroutine

  subroutine read_negative(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    user(position + 1:position + count) = -file
    converted = converted + int(extra_state) / 2
    ierror = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
  end subroutine

  subroutine write_negative(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    file = -user(position + 1:position + count)
    converted = converted + int(extra_state)
    ierror = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
  end subroutine

  subroutine extent_of_integer(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror, size
    call MPI_Type_size(datatype, size)
    extent = size
    ierror = merge(MPI_SUCCESS, MPI_ERR_TYPE, extra_state == 44)
  end subroutine

  subroutine free_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, complete .or. extra_state < 0)
  end subroutine
end module

program fortran_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ranks, provided

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call equal(provided, MPI_THREAD_MULTIPLE, 'the thread level')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call handles
  call messages
  call persistent
  call operators
  call attributes
  call errors
  call generalized
  call memory
  call buffers
  call files
  call sizes
  call kinds
  call sessions
  call representation
  call contents
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'fortran_f08: ok'
  call MPI_Finalize()

contains
#include "fortran_check.inc"

  subroutine handles
    type(MPI_Comm) :: copy, halves
    type(MPI_Group) :: world, some, copy_of
    integer :: result, new(1), code, members
    call MPI_Comm_dup(MPI_COMM_WORLD, copy)
    call check(copy /= MPI_COMM_WORLD .and. .not. copy == MPI_COMM_WORLD, 'handles that differ')
    call MPI_Comm_compare(copy, MPI_COMM_WORLD, result, code)
    call good(code, 'MPI_Comm_compare')
    call equal(result, MPI_CONGRUENT, 'MPI_Comm_compare')
    call MPI_Comm_free(copy)
    call check(copy == MPI_COMM_NULL, 'a freed handle')
    call equal(MPI_COMM_WORLD%MPI_VAL, 257, 'MPI_VAL')
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, halves)
    call MPI_Comm_rank(halves, result)
    call equal(result, (ranks - 1 - rank) / 2, 'the rank in a half')
    call MPI_Comm_free(halves)
    call MPI_Comm_group(MPI_COMM_WORLD, world)
    call MPI_Group_incl(world, 1, [ranks - 1], some)
    call MPI_Group_translate_ranks(some, 1, [0], world, new)
    call equal(new(1), ranks - 1, 'MPI_Group_translate_ranks')
    call MPI_Group_range_incl(world, 1, reshape([0, ranks - 1, 1], [3, 1]), copy_of)
    call MPI_Group_size(copy_of, members)
    call equal(members, ranks, 'MPI_Group_range_incl')
    call MPI_Group_free(copy_of)
    call MPI_Group_free(some)
    call MPI_Group_free(world)
  end subroutine

  subroutine messages
    type(MPI_Status) :: status, statuses(2), again
    type(MPI_Request) :: requests(2)
    type(MPI_Message) :: message
    integer, asynchronous :: sent(5), got(5)
    integer :: old(MPI_STATUS_SIZE), next, previous, count, i, which
    logical :: flag
    next = mod(rank + 1, ranks)
    previous = mod(rank + ranks - 1, ranks)
    sent = [(rank * i, i = 1, 5)]
    got = -1
    call MPI_Irecv(got, 5, MPI_INTEGER, previous, 4, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(sent, 4, MPI_INTEGER, next, 4, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call check(all(requests == MPI_REQUEST_NULL), 'completed requests')
    call equal(statuses(1)%MPI_SOURCE, previous, 'MPI_SOURCE')
    call equal(statuses(1)%MPI_TAG, 4, 'MPI_TAG')
    call MPI_Get_count(statuses(1), MPI_INTEGER, count)
    call equal(count, 4, 'MPI_Get_count')
    call check(all(got == [previous, 2 * previous, 3 * previous, 4 * previous, -1]), 'what came')
    call MPI_Status_f082f(statuses(1), old)
    call equal(old(MPI_SOURCE), previous, 'MPI_Status_f082f')
    call MPI_Status_f2f08(old, again)
    call MPI_Get_count(again, MPI_INTEGER, count)
    call equal(count, 4, 'MPI_Status_f2f08')
    call MPI_Isend(sent, 5, MPI_INTEGER, next, 5, MPI_COMM_WORLD, requests(1))
    call MPI_Mprobe(previous, 5, MPI_COMM_WORLD, message, status)
    call MPI_Mrecv(got, 5, MPI_INTEGER, message, MPI_STATUS_IGNORE)
    call check(message == MPI_MESSAGE_NULL, 'a received message')
    call equal(got(5), 5 * previous, 'MPI_Mrecv')
    requests(2) = MPI_REQUEST_NULL
    call MPI_Waitany(2, requests, which, status)
    call equal(which, 1, 'MPI_Waitany counts from 1')
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
    call check(flag, 'MPI_Testall')
    call MPI_Iprobe(MPI_ANY_SOURCE, 1234, MPI_COMM_WORLD, flag, status)
    call check(.not. flag, 'MPI_Iprobe')
  end subroutine

  subroutine persistent
    type(MPI_Request) :: requests(3)
    integer, asynchronous :: sent, got, total
    integer :: round, i
    call MPI_Send_init(sent, 1, MPI_INTEGER, mod(rank + 1, ranks), 9, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(got, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 9, MPI_COMM_WORLD, requests(2))
    call MPI_Allreduce_init(sent, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(3))
    do round = 1, 3
      sent = rank + round
      call MPI_Startall(3, requests)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
      call equal(got, mod(rank + ranks - 1, ranks) + round, 'a persistent receive')
      call equal(total, sum([(i + round, i = 0, ranks - 1)]), 'a persistent collective')
    end do
    do i = 1, 3
      call MPI_Request_free(requests(i))
    end do
  end subroutine

  subroutine operators
    use callbacks
    type(MPI_Op) :: op
    type(MPI_Request) :: request
    real(c_double), asynchronous :: values(3), results(3)
    integer :: numbers(2), sums(2)
    logical :: commutes
    call MPI_Op_create(product, .true., op)
    call MPI_Op_commutative(op, commutes)
    call check(commutes, 'MPI_Op_commutative')
    values = [2, 3, 1]
    call MPI_Allreduce(values, results, 3, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD)
    call check(all(nint(results) == [2**ranks, 3**ranks, 1]), 'an operator of the program')
    call MPI_Iallreduce(values, results, 3, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(nint(results) == [2**ranks, 3**ranks, 1]), 'the same, nonblocking')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'a freed operator')
    call MPI_Op_create_c(large_sum, .true., op)
    numbers = [rank, 1]
    call MPI_Allreduce(numbers, sums, 2_MPI_COUNT_KIND, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(all(sums == [ranks * (ranks - 1) / 2, ranks]), 'an operator for large counts')
    call check(count_of_large > 0 .or. ranks == 1 .or. rank > 0, 'it was called')
    call MPI_Op_free(op)
  end subroutine

  subroutine attributes
    use callbacks
    type(MPI_Datatype) :: type, copy
    integer :: keyval
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Type_contiguous(3, MPI_REAL, type)
    call MPI_Type_create_keyval(copy_type, delete_type, keyval, 3_MPI_ADDRESS_KIND)
    call MPI_Type_set_attr(type, keyval, 7_MPI_ADDRESS_KIND)
    call MPI_Type_dup(type, copy)
    call MPI_Type_get_attr(copy, keyval, value, flag)
    call check(flag .and. value == 21, 'a copied attribute')
    call MPI_Type_free(type)
    call equal(deleted, 7, 'a deleted attribute')
    call MPI_Type_free(copy)
    call equal(deleted, 28, 'and that of the copy')
    call MPI_Type_free_keyval(keyval)
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
    call MPI_Type_dup(MPI_REAL, type)
    call MPI_Type_set_attr(type, keyval, 2_MPI_ADDRESS_KIND**40)
    call MPI_Type_dup(type, copy)
    call MPI_Type_get_attr(copy, keyval, value, flag)
    call check(flag .and. value == 2_MPI_ADDRESS_KIND**40, 'MPI_TYPE_DUP_FN')
    call MPI_Type_free(copy)
    call MPI_Type_free(type)
    call MPI_Type_free_keyval(keyval)
  end subroutine

  subroutine errors
    use callbacks
    type(MPI_Errhandler) :: handler, now
    type(MPI_Comm) :: copy
    integer :: class, code
    character(len=20) :: short
    call MPI_Comm_dup(MPI_COMM_WORLD, copy)
    call MPI_Comm_create_errhandler(note, handler)
    call MPI_Comm_set_errhandler(copy, handler)
    call MPI_Comm_get_errhandler(copy, now)
    call check(now == handler, 'MPI_Comm_get_errhandler')
    call MPI_Errhandler_free(now)
    call MPI_Send(class, -1, MPI_INTEGER, 0, 0, copy)
    call MPI_Error_class(raised, class)
    call equal(class, MPI_ERR_COUNT, 'the class of the error')
    call check(raised_on == copy, 'the communicator of the error')
    call MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN)
    call MPI_Send(class, 1, MPI_DATATYPE_NULL, 0, 0, copy, code)
    call MPI_Error_class(code, class)
    call equal(class, MPI_ERR_TYPE, 'the class of a returned error')
    call MPI_Error_string(code, short, class)
    call check(short(1:4) /= ' ', 'a text that is cut')
    call MPI_Errhandler_free(handler)
    call MPI_Comm_free(copy)
  end subroutine

  subroutine generalized
    use callbacks
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    logical :: flag
    call MPI_Grequest_start(query, free_it, cancel, 11_MPI_ADDRESS_KIND, request)
    call MPI_Test(request, flag, status)
    call check(.not. flag, 'it is not complete')
    call MPI_Cancel(request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call equal(status%MPI_TAG, 11, 'its status')
    call MPI_Test_cancelled(status, flag)
    call check(flag, 'it was cancelled')
    call equal(freed, 11, 'it was freed')
  end subroutine

  subroutine memory
    type(c_ptr) :: address
    type(MPI_Win) :: window
    type(MPI_Comm) :: node
    integer, pointer :: mine(:)
    integer, asynchronous :: got(3)
    integer :: unit, one, i
    integer(kind=MPI_ADDRESS_KIND) :: size
    call MPI_Alloc_mem(12_MPI_ADDRESS_KIND, MPI_INFO_NULL, address)
    call c_f_pointer(address, mine, [3])
    mine = [1, 2, 3]
    call MPI_Free_mem(mine)
    call MPI_Win_allocate(12_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, address, window)
    call c_f_pointer(address, mine, [3])
    mine = rank * [1, 2, 3]
    call MPI_Win_fence(0, window)
    call MPI_Get(got, 3, MPI_INTEGER, ranks - 1, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call check(all(got == (ranks - 1) * [1, 2, 3]), 'MPI_Get')
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window)
    one = 1
    call MPI_Fetch_and_op(one, got(1), MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, window)
    call MPI_Win_unlock(0, window)
    call check(got(1) >= 0 .and. got(1) < ranks, 'MPI_Fetch_and_op')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_fence(0, window)
    if (rank == 0) call equal(mine(1), ranks, 'everybody has added one')
    call MPI_Win_fence(0, window)
    call MPI_Win_free(window)
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, node, address, window)
    call MPI_Comm_free(node)
    call MPI_Win_shared_query(window, 0, size, unit, address)
    call check(size == 8 .and. unit == 8 .and. c_associated(address), 'MPI_Win_shared_query')
    call MPI_Win_free(window)
    do i = 1, 2
      call PMPI_Barrier(MPI_COMM_WORLD)
    end do
  end subroutine

  subroutine buffers
    integer, asynchronous :: space(200)
    integer(kind=MPI_ADDRESS_KIND) :: place
    type(c_ptr) :: address
    integer :: size, got
    call MPI_Buffer_attach(space, 800)
    call MPI_Bsend(rank, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD)
    call MPI_Recv(got, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call equal(got, rank, 'MPI_Bsend')
    call MPI_Buffer_detach(address, size)
    call MPI_Get_address(space, place)
    call check(transfer(address, place) == place .and. size == 800, 'MPI_Buffer_detach')
  end subroutine

  subroutine files
    type(MPI_File) :: file
    type(MPI_Status) :: status
    type(MPI_Datatype) :: etype, filetype
    type(MPI_Request) :: request
    integer, asynchronous :: got(4)
    integer :: values(4), i, count
    integer(kind=MPI_OFFSET_KIND) :: displacement
    character(len=MPI_MAX_DATAREP_STRING) :: datarep
    call MPI_File_open(MPI_COMM_WORLD, 'fortran_f08.data', MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
      MPI_INFO_NULL, file)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL)
    call MPI_File_get_view(file, displacement, etype, filetype, datarep)
    call check(displacement == 0 .and. datarep == 'external32', 'MPI_File_get_view: ' // trim(datarep))
    values = [(rank * 4 + i, i = 1, 4)]
    call MPI_File_write_at_all(file, rank * 4_MPI_OFFSET_KIND, values, 4, MPI_INTEGER, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call equal(count, 4, 'what was written')
    call MPI_File_sync(file)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_File_iread_at(file, mod(rank + 1, ranks) * 4_MPI_OFFSET_KIND, got, 4, MPI_INTEGER, request)
    call MPI_Wait(request, status)
    call check(all(got == [(mod(rank + 1, ranks) * 4 + i, i = 1, 4)]), 'what another rank wrote')
    call MPI_File_close(file)
    call check(file == MPI_FILE_NULL, 'a closed file')
  end subroutine

  subroutine sizes
    integer :: size
    double precision :: scalar
    complex :: cube(2, 2, 2)
    call MPI_Sizeof(scalar, size)
    call equal(size, 8, 'MPI_Sizeof(double precision)')
    call MPI_Sizeof(cube, size)
    call equal(size, 8, 'MPI_Sizeof(complex)')
    call MPI_Sizeof(1_c_int16_t, size)
    call equal(size, 2, 'MPI_Sizeof(integer(2))')
  end subroutine

  subroutine kinds
    type(MPI_Datatype) :: type, pair
    integer, parameter :: long = selected_int_kind(15), quick = selected_real_kind(12, 200)
    integer(kind=long) :: numbers(2), sums(2)
    complex(kind=quick) :: values(1), total(1)
    integer :: size, combiner, integers, addresses, types
    call MPI_Type_create_f90_integer(15, type)
    numbers = [10_long**14, int(rank, long)]
    call MPI_Allreduce(numbers, sums, 2, type, MPI_SUM, MPI_COMM_WORLD)
    call check(sums(1) == ranks * 10_long**14, 'MPI_Type_create_f90_integer')
    call MPI_Type_create_f90_complex(12, 200, pair)
    values = cmplx(rank, 1, quick)
    call MPI_Allreduce(values, total, 1, pair, MPI_SUM, MPI_COMM_WORLD)
    call check(nint(aimag(total(1))) == ranks, 'MPI_Type_create_f90_complex')
    call MPI_Type_get_envelope(pair, integers, addresses, types, combiner)
    call check(combiner == MPI_COMBINER_F90_COMPLEX .and. integers == 2, 'MPI_Type_get_envelope')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, type)
    call MPI_Type_size(type, size)
    call equal(size, 4, 'MPI_Type_match_size')
  end subroutine

  ! A data representation of the program: in the file each integer is negative.
  subroutine representation
    use callbacks
    type(MPI_File) :: file
    integer :: values(3), got(3)
    integer(kind=MPI_ADDRESS_KIND) :: extent
    character(len=20) :: name
    call MPI_Register_datarep('negative', read_negative, write_negative, extent_of_integer, 44_MPI_ADDRESS_KIND)
    write (name, '(a, i0)') 'negative.', rank
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'negative', MPI_INFO_NULL)
    call MPI_File_get_type_extent(file, MPI_INTEGER, extent)
    call check(extent == 4, 'MPI_File_get_type_extent')
    values = [1, 20, 300]
    call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, values, 3, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, got, 3, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(got == values), 'what the functions of the program made of it')
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
    call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, got, 3, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(got == -values), 'what is in the file')
    call check(converted == 66, 'its extra state')
    call MPI_File_close(file)
  end subroutine

  subroutine contents
    type(MPI_Datatype) :: mixed, types(2), parts(3)
    integer :: numbers(4), integers, addresses, datatypes, combiner
    integer(kind=MPI_ADDRESS_KIND) :: places(2), found(2)
    types = [MPI_REAL, MPI_CHARACTER]
    places = [integer(kind=MPI_ADDRESS_KIND) :: 0, 16]
    call MPI_Type_create_struct(2, [3, 5], places, types, mixed)
    call MPI_Type_get_envelope(mixed, integers, addresses, datatypes, combiner)
    call check(combiner == MPI_COMBINER_STRUCT .and. datatypes == 2, 'MPI_Type_get_envelope of a structure')
    parts = MPI_DATATYPE_NULL
    numbers = -1
    call MPI_Type_get_contents(mixed, 4, 2, 3, numbers, found, parts)
    call check(all(numbers(1:3) == [2, 3, 5]) .and. all(found == places), 'MPI_Type_get_contents')
    call check(parts(1) == MPI_REAL .and. parts(2) == MPI_CHARACTER .and. parts(3) == MPI_DATATYPE_NULL, 'its datatypes')
    call MPI_Type_free(mixed)
  end subroutine

  subroutine sessions
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    type(MPI_Comm) :: comm
    integer :: sets, length, size
    character(len=20) :: name
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, sets)
    call check(sets >= 2, 'MPI_Session_get_num_psets')
    length = len(name)
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name)
    call check(name == 'mpi://WORLD', 'MPI_Session_get_nth_pset: ' // name)
    call MPI_Group_from_session_pset(session, 'mpi://WORLD', group)
    call MPI_Comm_create_from_group(group, 'fortran_f08', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm)
    call MPI_Comm_size(comm, size)
    call equal(size, ranks, 'a communicator of a session')
    call MPI_Comm_free(comm)
    call MPI_Group_free(group)
    call MPI_Session_finalize(session)
    call check(session == MPI_SESSION_NULL, 'a finalized session')
  end subroutine
end program
