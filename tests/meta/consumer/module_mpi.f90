! The smallest user of the installed module varve_mpi: is told that it forgot MPI_Init.
program consumer
  use mpi_f08, only: MPI_COMM_WORLD
  use varve_mpi
  implicit none
  type(varve_session) :: v
  integer :: stat

  call varve_open_mpi(v, MPI_COMM_WORLD, 'mem:consumer', 'a', stat=stat)
  print '(a)', varve_last_error()
  if (stat /= varve_einval) error stop 1
end program
