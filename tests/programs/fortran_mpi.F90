! The older forms of the bindings: handles and statuses are INTEGERs, the error code is the last argument.
#ifdef WITH_MPIF
#define HOW
#define NAME 'fortran_mpif'
#else
#define HOW use mpi
#define NAME 'fortran_mpi'
#endif

module older_callbacks
contains
  subroutine add_squares(invec, inoutvec, len, type)
    integer :: len, type
    integer :: invec(len), inoutvec(len)
    inoutvec = inoutvec + invec * invec
    if (type < 0) inoutvec = 0
  end subroutine

  subroutine copy_attribute(oldcomm, keyval, extra_state, value_in, value_out, flag, ierror)
    HOW
    implicit none
#ifdef WITH_MPIF
    include 'mpif.h'
#endif
    integer :: oldcomm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    value_out = value_in + extra_state
    flag = value_in /= 13 .and. oldcomm /= MPI_COMM_NULL .and. keyval /= MPI_KEYVAL_INVALID
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_attribute(comm, keyval, value, extra_state, ierror)
    HOW
    implicit none
#ifdef WITH_MPIF
    include 'mpif.h'
#endif
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra_state
    integer :: deleted
    common /counted/ deleted
    deleted = deleted + int(value) + int(extra_state) * 0
    ierror = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) ierror = MPI_ERR_OTHER
  end subroutine

  subroutine note_error(comm, code)
    integer :: comm, code
    integer :: noted(2)
    common /errors/ noted
    noted = [comm, code]
  end subroutine

  subroutine query_request(extra_state, status, ierror)
    HOW
    implicit none
#ifdef WITH_MPIF
    include 'mpif.h'
#endif
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state), ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_SOURCE) = 5
    status(MPI_TAG) = 6
  end subroutine

  subroutine free_request(extra_state, ierror)
    HOW
    implicit none
#ifdef WITH_MPIF
    include 'mpif.h'
#endif
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror, freed
    common /freed_requests/ freed
    freed = int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel_request(extra_state, complete, ierror)
    HOW
    implicit none
#ifdef WITH_MPIF
    include 'mpif.h'
#endif
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, .not. complete .and. extra_state > 0)
  end subroutine
end module

program fortran_older
  HOW
  implicit none
#ifdef WITH_MPIF
  include 'mpif.h'
#endif
  integer :: rank, ranks, code

  call MPI_Init(code)
  call good(code, 'MPI_Init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call ring
  call sentinels
  call logicals
  call strings
  call requests
  call operators
  call attributes
  call errors
  call generalized
  call derived
  call windows
  call files
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) print '(2a)', NAME, ': ok'
  call MPI_Finalize(code)
  call good(code, 'MPI_Finalize')

contains
#include "fortran_check.inc"

  subroutine ring
    integer :: status(MPI_STATUS_SIZE), token(3), code, next, previous, count
    double precision :: before
    character(len=5) :: word
    before = MPI_Wtime()
    next = mod(rank + 1, ranks)
    previous = mod(rank + ranks - 1, ranks)
    token = rank * [1, 10, 100]
    call MPI_Sendrecv_replace(token, 3, MPI_INTEGER, next, 7, previous, 7, MPI_COMM_WORLD, status, code)
    call good(code, 'MPI_Sendrecv_replace')
    call check(all(token == previous * [1, 10, 100]), 'the token of the previous rank')
    call equal(status(MPI_SOURCE), previous, 'MPI_SOURCE')
    call equal(status(MPI_TAG), 7, 'MPI_TAG')
    call MPI_Get_count(status, MPI_INTEGER, count, code)
    call equal(count, 3, 'MPI_Get_count')
    word = 'none'
    if (rank == 0) then
      call MPI_Send('hello', 5, MPI_CHARACTER, next, 8, MPI_COMM_WORLD, code)
      call MPI_Recv(word, 5, MPI_CHARACTER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, code)
    else
      call MPI_Recv(word, 5, MPI_CHARACTER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, code)
      call MPI_Send(word, 5, MPI_CHARACTER, next, 8, MPI_COMM_WORLD, code)
    end if
    call check(word == 'hello', 'a word went around: ' // word)
    call check(MPI_Wtime() >= before .and. MPI_Wtick() > 0, 'MPI_Wtime')
    call check(PMPI_Wtime() >= before, 'PMPI_Wtime')
  end subroutine

  subroutine sentinels
    integer :: code, sums(2), everyone(2), blocks(2), types(1), type, gathered(ranks), value
    integer(kind=MPI_ADDRESS_KIND) :: address(1)
    integer :: graph, neighbors(2), in, out
    logical :: weighted
    sums = [rank, 1]
    call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call equal(sums(1), ranks * (ranks - 1) / 2, 'MPI_IN_PLACE: sum')
    call equal(sums(2), ranks, 'MPI_IN_PLACE: number')
    gathered = -1
    gathered(rank + 1) = rank + 5
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
    call check(all(gathered == [(value + 4, value = 1, ranks)]), 'MPI_IN_PLACE in MPI_Allgather')
    everyone = 0
    call MPI_Get_address(sums, address(1), code)
    blocks(1) = 2
    types = MPI_INTEGER
    call MPI_Type_create_struct(1, blocks, address, types, type, code)
    call MPI_Type_commit(type, code)
    call MPI_Sendrecv(MPI_BOTTOM, 1, type, rank, 1, everyone, 2, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, code)
    call good(code, 'MPI_BOTTOM')
    call check(all(everyone == sums), 'what came from MPI_BOTTOM')
    call MPI_Type_free(type, code)
    call equal(type, MPI_DATATYPE_NULL, 'a freed handle')
    neighbors = [mod(rank + 1, ranks), mod(rank + ranks - 1, ranks)]
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, neighbors(2:2), MPI_UNWEIGHTED, 1, neighbors(1:1), MPI_UNWEIGHTED, &
      MPI_INFO_NULL, .false., graph, code)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted, code)
    call check(in == 1 .and. out == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
    call MPI_Comm_free(graph, code)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, neighbors, MPI_WEIGHTS_EMPTY, 0, neighbors, MPI_WEIGHTS_EMPTY, &
      MPI_INFO_NULL, .false., graph, code)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted, code)
    call check(in == 0 .and. weighted, 'MPI_WEIGHTS_EMPTY')
    call MPI_Comm_free(graph, code)
  end subroutine

  subroutine logicals
    integer :: code, grid, dims(2), coords(2)
    logical :: flag, periods(2), all_true(3), any_true(3)
    call MPI_Initialized(flag, code)
    call check(flag, 'MPI_Initialized')
    call MPI_Finalized(flag, code)
    call check(.not. flag, 'MPI_Finalized')
    dims = 0
    call MPI_Dims_create(ranks, 2, dims, code)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., grid, code)
    periods = [.false., .true.]
    call MPI_Cart_get(grid, 2, dims, periods, coords, code)
    call check(periods(1) .eqv. .true., 'the first dimension is periodic')
    call check(periods(2) .eqv. .false., 'the second dimension is not')
    call MPI_Comm_free(grid, code)
    all_true = [.true., .false., rank == 0]
    any_true = all_true
    call MPI_Allreduce(MPI_IN_PLACE, all_true, 3, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, code)
    call MPI_Allreduce(MPI_IN_PLACE, any_true, 3, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, code)
    call check(all(all_true .eqv. [.true., .false., ranks == 1]), 'MPI_LAND')
    call check(all(any_true .eqv. [.true., .false., .true.]), 'MPI_LOR')
  end subroutine

  subroutine strings
    character(len=MPI_MAX_PROCESSOR_NAME) :: name
    character(len=10) :: short
    character(len=40) :: value
    integer :: code, length, info, keys
    logical :: flag
    name = repeat('x', len(name))
    call MPI_Get_processor_name(name, length, code)
    call check(length > 0 .and. len_trim(name) == length, 'MPI_Get_processor_name fills up with blanks')
    call MPI_Comm_set_name(MPI_COMM_SELF, 'me and only me  ', code)
    call MPI_Comm_get_name(MPI_COMM_SELF, value, length, code)
    call check(value == 'me and only me' .and. length == 14, 'MPI_Comm_get_name: ' // value)
    call MPI_Comm_get_name(MPI_COMM_SELF, short, length, code)
    call check(short == 'me and onl', 'a name that is cut: ' // short)
    call MPI_Info_create(info, code)
    call MPI_Info_set(info, '  key  ', ' a value ', code)
    call MPI_Info_get_nkeys(info, keys, code)
    call equal(keys, 1, 'MPI_Info_get_nkeys')
    call MPI_Info_get(info, 'key', len(value), value, flag, code)
    call check(flag .and. value == 'a value', 'MPI_Info_get: ' // value)
    length = len(short)
    call MPI_Info_get_string(info, 'key', length, short, flag, code)
    call check(flag .and. length == 7 .and. short == 'a value', 'MPI_Info_get_string: ' // short)
    length = 0
    call MPI_Info_get_string(info, 'key', length, short, flag, code)
    call check(flag .and. length == 7, 'MPI_Info_get_string: the length')
    call MPI_Info_get_valuelen(info, 'key', length, flag, code)
    call check(flag .and. length == 7, 'MPI_Info_get_valuelen')
    call MPI_Info_get_nthkey(info, 0, short, code)
    call check(short == 'key', 'MPI_Info_get_nthkey: ' // short)
    flag = .true.
    call MPI_Info_get(info, 'other', len(value), value, flag, code)
    call check(.not. flag, 'a key that is not there')
    call MPI_Info_free(info, code)
    call equal(info, MPI_INFO_NULL, 'a freed info')
  end subroutine

  subroutine requests
    integer, asynchronous :: values(2), from(2)
    integer :: all(4), statuses(MPI_STATUS_SIZE, 4), code, which, done, indices(4), next, previous
    logical :: flag
    next = mod(rank + 1, ranks)
    previous = mod(rank + ranks - 1, ranks)
    values = [rank, -rank]
    from = 99
    call MPI_Irecv(from(1), 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, all(1), code)
    call MPI_Irecv(from(2), 1, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, all(2), code)
    call MPI_Isend(values(1), 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, all(3), code)
    call MPI_Isend(values(2), 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD, all(4), code)
    call MPI_Waitall(4, all, statuses, code)
    call equal(statuses(MPI_TAG, 2), 2, 'the tag of the second status')
    call equal(statuses(MPI_SOURCE, 1), previous, 'the source of the first')
    call equal(all(3), MPI_REQUEST_NULL, 'a completed request')
    call equal(from(2), -previous, 'what came')
    all = MPI_REQUEST_NULL
    call MPI_Recv_init(from, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, all(2), code)
    call MPI_Start(all(2), code)
    call MPI_Testany(4, all, which, flag, MPI_STATUS_IGNORE, code)
    call check(.not. flag, 'nothing has come')
    call MPI_Send(values, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, code)
    call MPI_Waitany(4, all, which, MPI_STATUS_IGNORE, code)
    call equal(which, 2, 'MPI_Waitany counts from 1')
    call MPI_Start(all(2), code)
    call MPI_Send(values, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, code)
    call MPI_Waitsome(4, all, done, indices, MPI_STATUSES_IGNORE, code)
    call equal(done, 1, 'MPI_Waitsome')
    call equal(indices(1), 2, 'MPI_Waitsome counts from 1')
    call MPI_Request_free(all(2), code)
    call MPI_Waitany(4, all, which, MPI_STATUS_IGNORE, code)
    call equal(which, MPI_UNDEFINED, 'MPI_Waitany without requests')
  end subroutine

  subroutine operators
    use older_callbacks, only: add_squares
    integer :: op, code, values(2), results(2), i
    call MPI_Op_create(add_squares, .false., op, code)
    values = [rank + 1, 2]
    results = -1
    call MPI_Allreduce(values, results, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call equal(results(2), 2 * ranks, 'MPI_SUM')
    ! The last operand is added as it is.
    results = [0, 0]
    call MPI_Reduce_local(values, results, 2, MPI_INTEGER, op, code)
    call check(all(results == values**2), 'MPI_Reduce_local with an operator of the program')
    call MPI_Scan(values, results, 2, MPI_INTEGER, op, MPI_COMM_WORLD, code)
    call good(code, 'MPI_Scan')
    if (rank == 1) call check(results(1) == 2 + 1 .and. results(2) == 6, 'MPI_Scan with an operator of the program')
    call MPI_Op_free(op, code)
    call equal(op, MPI_OP_NULL, 'a freed operator')
    call MPI_Exscan([(rank, i = 1, 2)], results, 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, code)
    if (rank > 0) call equal(results(1), rank - 1, 'MPI_Exscan')
  end subroutine

  subroutine attributes
    use older_callbacks, only: copy_attribute, delete_attribute
    integer :: keyval, code, copy, deleted, old
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    common /counted/ deleted
    deleted = 0
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, code)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Comm_create_keyval(copy_attribute, delete_attribute, keyval, 100_MPI_ADDRESS_KIND, code)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 5_MPI_ADDRESS_KIND, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
    call MPI_Comm_get_attr(copy, keyval, value, flag, code)
    call check(flag .and. value == 105, 'a copied attribute')
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 13_MPI_ADDRESS_KIND, code)
    call equal(deleted, 5, 'a replaced attribute is deleted')
    call MPI_Comm_free(copy, code)
    call equal(deleted, 110, 'the attribute of a freed communicator is deleted')
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
    call MPI_Comm_get_attr(copy, keyval, value, flag, code)
    call check(.not. flag, 'an attribute that does not want to be copied')
    call MPI_Comm_free(copy, code)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, code)
    call equal(deleted, 123, 'MPI_Comm_delete_attr')
    call MPI_Comm_free_keyval(keyval, code)
    call equal(keyval, MPI_KEYVAL_INVALID, 'a freed keyval')
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, code)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, -7_MPI_ADDRESS_KIND, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
    call MPI_Comm_get_attr(copy, keyval, value, flag, code)
    call check(flag .and. value == -7, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(copy, code)
    call MPI_Comm_free_keyval(keyval, code)
    ! The deprecated form, whose attributes are default INTEGERs.
    call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 3, code)
    call MPI_Attr_put(MPI_COMM_WORLD, keyval, -9, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
    call MPI_Attr_get(copy, keyval, old, flag, code)
    call check(flag .and. old == -9, 'MPI_Attr_get')
    call MPI_Comm_free(copy, code)
    call MPI_Attr_delete(MPI_COMM_WORLD, keyval, code)
    call MPI_Attr_get(MPI_COMM_WORLD, keyval, old, flag, code)
    call check(.not. flag, 'MPI_Attr_delete')
    call MPI_Keyval_free(keyval, code)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, code)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 8_MPI_ADDRESS_KIND, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
    call MPI_Comm_get_attr(copy, keyval, value, flag, code)
    call check(.not. flag, 'MPI_COMM_NULL_COPY_FN')
    call MPI_Comm_free(copy, code)
    call MPI_Comm_free_keyval(keyval, code)
  end subroutine

  subroutine errors
    use older_callbacks, only: note_error
    integer :: handler, code, class, length, noted(2), value
    character(len=MPI_MAX_ERROR_STRING) :: text
    common /errors/ noted
    noted = 0
    call MPI_Comm_create_errhandler(note_error, handler, code)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, code)
    call MPI_Send(value, 1, MPI_INTEGER, ranks + 3, 0, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class, code)
    call equal(class, MPI_ERR_RANK, 'the class of the error')
    call equal(noted(1), MPI_COMM_WORLD, 'the communicator that the handler got')
    call MPI_Error_class(noted(2), class, code)
    call equal(class, MPI_ERR_RANK, 'the error that the handler got')
    call MPI_Error_string(MPI_ERR_TAG, text, length, code)
    call check(length > 3 .and. len_trim(text) == length, 'MPI_Error_string')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, code)
    call MPI_Errhandler_free(handler, code)
  end subroutine

  subroutine generalized
    use older_callbacks, only: query_request, free_request, cancel_request
    integer :: request, code, status(MPI_STATUS_SIZE), elements, freed
    common /freed_requests/ freed
    freed = 0
    call MPI_Grequest_start(query_request, free_request, cancel_request, 17_MPI_ADDRESS_KIND, request, code)
    call MPI_Cancel(request, code)
    call good(code, 'MPI_Cancel')
    call MPI_Grequest_complete(request, code)
    call MPI_Wait(request, status, code)
    call MPI_Get_elements(status, MPI_INTEGER, elements, code)
    call equal(elements, 17, 'the elements of a generalized request')
    call equal(status(MPI_TAG), 6, 'its tag')
    call equal(freed, 17, 'it was freed')
  end subroutine

  subroutine derived
    integer :: type, code, matrix(4, 4), row(4), size, i, pair(2), results(2)
    integer(kind=MPI_ADDRESS_KIND) :: lower, extent
    double precision :: place(2), least(2)
    character(len=64) :: packed
    integer :: position
    matrix = reshape([(i, i = 1, 16)], [4, 4])
    call MPI_Type_vector(4, 1, 4, MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    call MPI_Type_size(type, size, code)
    call equal(size, 16, 'MPI_Type_size')
    call MPI_Type_get_extent(type, lower, extent, code)
    call check(lower == 0 .and. extent == 52, 'MPI_Type_get_extent')
    call MPI_Sendrecv(matrix(2, 1), 1, type, rank, 0, row, 4, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call check(all(row == [2, 6, 10, 14]), 'a row of a matrix')
    call MPI_Type_free(type, code)
    position = 0
    call MPI_Pack(row, 4, MPI_INTEGER, packed, len(packed), position, MPI_COMM_WORLD, code)
    call equal(position, 16, 'MPI_Pack')
    position = 0
    row = 0
    call MPI_Unpack(packed, len(packed), position, row, 4, MPI_INTEGER, MPI_COMM_WORLD, code)
    call check(all(row == [2, 6, 10, 14]), 'MPI_Unpack')
    pair = [rank, 100 - rank]
    call MPI_Allreduce(pair, results, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, code)
    call check(results(1) == ranks - 1 .and. results(2) == 101 - ranks, 'MPI_2INTEGER')
    place = [abs(rank - 1) * 1.5d0, rank * 1d0]
    call MPI_Allreduce(place, least, 1, MPI_2DOUBLE_PRECISION, MPI_MINLOC, MPI_COMM_WORLD, code)
    if (ranks > 1) call check(least(1) < 0.1 .and. nint(least(2)) == 1, 'MPI_2DOUBLE_PRECISION')
    ! A section with gaps, in a call that returns when it is done with it.
    row = 0
    call MPI_Sendrecv(matrix(1:4:2, 2), 2, MPI_INTEGER, rank, 0, row, 2, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, code)
    call check(all(row(1:2) == [5, 7]), 'a section with gaps is sent')
  end subroutine

  subroutine windows
    integer, asynchronous :: memory(4), got(4)
    integer :: window, code
    integer(kind=MPI_ADDRESS_KIND) :: value, place
    logical :: flag
    memory = rank
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, code)
    call MPI_Win_fence(0, window, code)
    call MPI_Get(got, 4, MPI_INTEGER, mod(rank + 1, ranks), 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, window, code)
    call MPI_Win_fence(0, window, code)
    call check(all(got == mod(rank + 1, ranks)), 'MPI_Get')
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag, code)
    call check(flag .and. value == 16, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, flag, code)
    call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(window, MPI_WIN_BASE, value, flag, code)
    call MPI_Get_address(memory, place, code)
    call check(flag .and. value == place, 'MPI_WIN_BASE')
    call MPI_Win_free(window, code)
    call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, value, code)
    call check(value /= 0, 'MPI_Alloc_mem')
  end subroutine

  subroutine files
    integer :: file, code, status(MPI_STATUS_SIZE), values(3), read(3), count
    integer(kind=MPI_OFFSET_KIND) :: size
    character(len=40) :: name
    name = NAME // '.data'
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file, code)
    call good(code, 'MPI_File_open')
    call MPI_File_set_view(file, rank * 12_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, code)
    values = rank * 10 + [1, 2, 3]
    call MPI_File_write_all(file, values, 3, MPI_INTEGER, status, code)
    call MPI_Get_count(status, MPI_INTEGER, count, code)
    call equal(count, 3, 'what was written')
    call MPI_File_sync(file, code)
    call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, read, 3, MPI_INTEGER, MPI_STATUS_IGNORE, code)
    call check(all(read == values), 'what was read')
    call MPI_Barrier(MPI_COMM_WORLD, code)
    call MPI_File_get_size(file, size, code)
    call check(size == 12 * ranks, 'MPI_File_get_size')
    call MPI_File_close(file, code)
    call equal(file, MPI_FILE_NULL, 'a closed file')
  end subroutine
end program
