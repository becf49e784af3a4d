! The plate of heat.f90, cut into stripes, one to a rank. Kill any rank and start the job again: it ends with the same bits.
!
!   mpirun -n 4 build/examples/heat_mpi ckpt 200 1000 20      a store, cells along an edge, steps, steps between checkpoints
program heat_mpi
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use varve_mpi
  implicit none
  real(real64), allocatable, target :: T(:, :), next(:, :) ! columns 0 and m + 1 are the neighbours'
  integer, target :: step
  type(varve_session) :: v
  integer :: n, m, steps, every, rank, ranks, left, right
  logical :: restarted

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  n = number(2, 200)
  steps = number(3, 1000)
  every = number(4, 20)
  m = n*(rank + 1)/ranks - n*rank/ranks
  step = 0
  allocate (T(n, 0:m + 1), source=20.0_real64)
  T(n/4:n/2, 1:(m + 1)/2) = 90.0_real64
  next = T

  call varve_open_mpi(v, MPI_COMM_WORLD, word(1, 'ckpt'), 'heat')
  call varve_protect(v, 'step', step)
  call varve_protect(v, 'T', T)
  call varve_restart(v, restarted)
  if (restarted .and. rank == 0) print '(a, i0, a, i0)', 'restarted from epoch ', varve_epoch(v), ' at step ', step
  do while (step < steps)
    call advance()
    if (varve_due(v)) call varve_checkpoint(v) ! by all ranks: all get the same answer
  end do
  call varve_close(v)
  call tell()
  call MPI_Finalize()

contains

  ! To the next step at which a checkpoint may be taken, or to the last step.
  subroutine advance()
    do
      call exchange()
      call cool()
      step = step + 1
      if (mod(step, every) == 0 .or. step >= steps) exit
    end do
  end subroutine

  subroutine exchange()
    call MPI_Sendrecv(T(:, 1), n, MPI_DOUBLE_PRECISION, left, 0, T(:, m + 1), n, MPI_DOUBLE_PRECISION, right, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(T(:, m), n, MPI_DOUBLE_PRECISION, right, 0, T(:, 0), n, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine cool()
    integer :: i, j

    do j = 1, m
      do i = 2, n - 1
        next(i, j) = T(i, j) + 0.1_real64*(T(i - 1, j) + T(i + 1, j) + T(i, j - 1) + T(i, j + 1) - 4.0_real64*T(i, j))
      end do
    end do
    T(:, 1:m) = next(:, 1:m)
  end subroutine

  subroutine tell()
    integer(int64) :: mine, all
    integer :: i, j

    mine = rank
    do j = 1, m
      do i = 1, n
        mine = ieor(ishftc(mine, 7), transfer(T(i, j), mine))
      end do
    end do
    call MPI_Reduce(mine, all, 1, MPI_INTEGER8, MPI_BXOR, 0, MPI_COMM_WORLD)
    if (rank == 0) print '(a, z16.16, a, i0)', 'checksum ', all, ' after step ', step
  end subroutine

  function word(i, otherwise) result(w)
    integer, intent(in) :: i
    character(*), intent(in) :: otherwise
    character(:), allocatable :: w
    character(4096) :: given

    call get_command_argument(i, given)
    w = trim(given)
    if (w == '') w = otherwise
  end function

  function number(i, otherwise) result(value)
    integer, intent(in) :: i, otherwise
    integer :: value, stat
    character(:), allocatable :: given

    given = word(i, '')
    value = otherwise
    if (given == '') return
    read (given, *, iostat=stat) value
    if (stat /= 0 .or. value < 4) error stop 'usage: heat_mpi [STORE [CELLS [STEPS [EVERY]]]], numbers from 4 on'
  end function
end program
