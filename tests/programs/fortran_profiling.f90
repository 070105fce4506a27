! A program that has an MPI_Send of its own in front of PMPI_Send.
module counted
  implicit none
  integer :: sends = 0
end module

subroutine MPI_Send(buf, count, datatype, dest, tag, comm, ierror)
  use counted
  implicit none
  integer :: buf(*)
  integer :: count, datatype, dest, tag, comm, ierror
  external :: PMPI_Send
  sends = sends + 1
  call PMPI_Send(buf, count, datatype, dest, tag, comm, ierror)
end subroutine

program fortran_profiling
  use mpi
  use counted
  implicit none
  integer :: rank, code, value
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  value = 5
  if (rank == 0) then
    call MPI_Send(value, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, code)
    call PMPI_Send(value, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, code)
    if (sends /= 1) call MPI_Abort(MPI_COMM_WORLD, 97, code)
    print '(a)', 'fortran_profiling: ok'
  else if (rank == 1) then
    value = 0
    call MPI_Recv(value, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call PMPI_Recv(value, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    if (value /= 5) call MPI_Abort(MPI_COMM_WORLD, 97, code)
  end if
  call MPI_Finalize(code)
end program
