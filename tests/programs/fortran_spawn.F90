! Starting processes from Fortran: commands and arguments are CHARACTERs, and a blank one ends a list.
program fortran_spawn
  use mpi_f08
  implicit none
  integer :: rank, ranks, code, codes(2)
  type(MPI_Comm) :: parent, children
  character(len=200) :: program
  character(len=12) :: arguments(3), text

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(0, program)
  if (command_argument_count() == 0) then
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    arguments = [character(len=12) :: 'child', ' two  words', ' ']
    codes = -1
    call MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes, code)
    call good(code, 'MPI_Comm_spawn')
    call check(all(codes == MPI_SUCCESS), 'the error codes')
    call together(children, 2 * 7)
    call MPI_Comm_spawn_multiple(2, [program, program], reshape([character(len=12) :: 'child', 'child', ' ', ' '], [2, 2]), &
      [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, code)
    call good(code, 'MPI_Comm_spawn_multiple')
    call together(children, 2 * 5)
    if (rank == 0) print '(a)', 'fortran_spawn: ok'
  else
    call MPI_Comm_get_parent(parent)
    call check(parent /= MPI_COMM_NULL, 'MPI_Comm_get_parent')
    call get_command_argument(1, text)
    call check(text == 'child', 'the first argument: ' // text)
    if (command_argument_count() == 2) then
      call get_command_argument(2, text)
      call check(text == ' two  words', 'the second argument: ' // text)
      call together(parent, 7)
    else
      call equal(command_argument_count(), 1, 'the number of arguments')
      call together(parent, 5)
    end if
  end if
  call MPI_Finalize()

contains
#include "fortran_check.inc"

  ! The children give a number each, and the parents its sum.
  subroutine together(comm, number)
    type(MPI_Comm), intent(inout) :: comm
    integer, intent(in) :: number
    integer :: got, size
    call MPI_Comm_remote_size(comm, size)
    if (comm == parent_or_null()) then
      call MPI_Reduce(number, got, 1, MPI_INTEGER, MPI_SUM, 0, comm)
    else
      call MPI_Reduce(0, got, 1, MPI_INTEGER, MPI_SUM, merge(MPI_ROOT, MPI_PROC_NULL, rank == 0), comm)
      if (rank == 0) call equal(got, number, 'the sum of the children')
    end if
    call MPI_Comm_disconnect(comm)
  end subroutine

  function parent_or_null() result(comm)
    type(MPI_Comm) :: comm
    call MPI_Comm_get_parent(comm)
  end function
end program
