! A hot plate that cools. Kill the program whenever you like and start it again: it goes on from its last checkpoint and ends
! with the same bits as one that was never disturbed.
!
!   build/examples/heat ckpt 200 1000 20          a store, cells along an edge, steps, steps from checkpoint to checkpoint
!
! What varve needs is in attach and simulate; a run that finds a checkpoint takes the size of the plate from there.
module plate
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none

  real(real64), allocatable :: T(:, :), next(:, :)

contains

  subroutine heat_up(n)
    integer, intent(in) :: n

    allocate (T(n, n), source=20.0_real64)
    T(n/4:n/2, n/4:n/2) = 90.0_real64
  end subroutine

  subroutine cool()
    integer :: i, j

    next = T
    do j = 2, size(T, 2) - 1
      do i = 2, size(T, 1) - 1
        next(i, j) = T(i, j) + 0.1_real64*(T(i - 1, j) + T(i + 1, j) + T(i, j - 1) + T(i, j + 1) - 4.0_real64*T(i, j))
      end do
    end do
    T(:, :) = next ! into the memory that is protected: T = next might allocate it anew
  end subroutine

  ! Two plates with the same sum are the same bit for bit.
  function checksum() result(sum)
    integer(int64) :: sum
    integer :: i, j

    sum = 0
    do j = 1, size(T, 2)
      do i = 1, size(T, 1)
        sum = ieor(ishftc(sum, 7), transfer(T(i, j), sum))
      end do
    end do
  end function
end module

program heat
  use varve
  use plate
  implicit none
  integer, target :: step
  type(varve_session) :: v
  integer :: n, steps, every

  n = number(2, 200)
  steps = number(3, 1000)
  every = max(number(4, 20), 1)
  call attach(word(1, 'ckpt'))
  call simulate()
  call varve_close(v) ! waits until the last one is durable
  print '(a, z16.16, a, i0)', 'checksum ', checksum(), ' after step ', step

contains

  subroutine attach(store)
    character(*), intent(in) :: store
    type(varve_region_info) :: saved
    integer :: stat
    logical :: restarted

    step = 0
    call varve_open(v, store, 'heat')
    call varve_region(v, 'T', saved, stat=stat)
    if (stat == 0) n = int(saved%shape(1))
    call heat_up(n)
    call varve_protect(v, 'step', step)
    call varve_protect(v, 'T', T)
    call varve_restart(v, restarted)
    if (restarted) print '(a, i0, a, i0)', 'restarted from epoch ', varve_epoch(v), ' at step ', step
  end subroutine

  subroutine simulate()
    character(500) :: why
    integer :: stat

    do while (step < steps)
      call advance()
      stat = varve_ok
      if (varve_due(v)) call varve_checkpoint(v, stat, why)
      if (stat /= varve_ok) print '(a)', 'not saved: '//trim(why) ! the older ones are there all the same
    end do
  end subroutine

  ! To the next step at which a checkpoint may be taken, or to the last step.
  subroutine advance()
    do
      call cool()
      step = step + 1
      if (mod(step, every) == 0 .or. step >= steps) exit
    end do
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
    if (stat /= 0 .or. value < 4) error stop 'usage: heat [STORE [CELLS [STEPS [EVERY]]]], numbers from 4 on'
  end function
end program
