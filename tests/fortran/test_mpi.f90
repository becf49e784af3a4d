! ctest: MPI 1,3
! A session over a communicator of either kind; what fails on one rank fails on all.
program test_mpi
  use mpi_f08
  use varve_mpi
  implicit none
  type(varve_session) :: v, keeper
  type(MPI_Comm) :: twin
  integer, target :: x
  integer :: rank, ranks, stat, failures = 0
  logical :: restarted
  character(300) :: msg

  call varve_open_mpi(v, MPI_COMM_WORLD, 'mem:early', 'a', stat=stat, errmsg=msg)
  call check(stat == varve_einval .and. index(msg, 'MPI is not initialised') > 0, trim(msg))
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, twin)
  if (ranks == 1) then ! memory is each process's own
    call varve_open(keeper, 'mem:both', 'another') ! or it would be gone with the first session
    call try_integer()
    call try_f08()
    call varve_close(keeper)
  end if
  call varve_open_mpi(v, twin, 'mem:ranks', 'a', merge('codec=gzip', 'codec=none', rank == ranks - 1), stat, msg)
  call check(stat /= varve_ok, 'one rank has a wrong option')
  call check(.not. varve_is_open(v), 'then it is not open')
  call MPI_Comm_free(twin)
  call MPI_Finalize()
  call varve_open_mpi(v, MPI_COMM_WORLD, 'mem:late', 'a', stat=stat)
  call check(stat == varve_einval, 'after MPI_Finalize')
  if (failures > 0) error stop 1

contains

  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what

    if (fine) return
    failures = failures + 1
    print '(a, i0, 4a)', 'rank ', rank, ': wrong: ', what, '; ', varve_last_error()
  end subroutine

  subroutine try_integer()
    call varve_open_mpi(v, twin%MPI_VAL, 'mem:both', 'a')
    x = 10 + rank
    call varve_protect(v, 'x', x)
    call varve_restart(v, restarted)
    call check(.not. restarted, 'new')
    call varve_checkpoint(v)
    call varve_close(v)
  end subroutine

  subroutine try_f08()
    call varve_open_mpi(v, twin, 'mem:both', 'a', 'keep=3')
    x = 0
    call varve_protect(v, 'x', x)
    call varve_restart(v, restarted)
    call check(restarted .and. x == 10 + rank, 'restarted')
    call varve_close(v)
  end subroutine
end program
