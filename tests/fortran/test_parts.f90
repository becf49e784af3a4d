! Parts of global arrays, shared variables and lists: stored in two parts, restarted in one; and what is refused.
program test_parts
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use varve
  implicit none
  type(varve_session) :: keeper ! a store in memory ends with its last session

  call varve_open(keeper, 'mem:parts', 'keeper')
  call store()
  call restart()
  call refused()
  call varve_close(keeper)

contains

  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what

    if (fine) return
    print *, 'failed: ', what
    error stop
  end subroutine

  pure real(real64) function cell(i, j)
    integer, intent(in) :: i, j

    cell = 100 * i + j
  end function

  ! Columns 1 to 4 and 5 to 9 of a 6 x 9 array, each with a ghost column at each end.
  subroutine store()
    type(varve_session) :: v
    real(real64), target :: left(6, 0:5), right(6, 4:10)
    real, target :: particles(3, 10)
    integer, target :: step
    integer :: i, j

    do j = 0, 5
      left(:, j) = [(cell(i, j), i = 1, 6)]
    end do
    do j = 4, 10
      right(:, j) = [(cell(i, j), i = 1, 6)]
    end do
    do i = 1, 10
      particles(:, i) = i
    end do
    step = 7
    call varve_open(v, 'mem:parts', 'run', 'mode=sync')
    call varve_protect_slab(v, 'T#left', left, [6_int64, 9_int64], [1_int64, 1_int64], [0_int64, 1_int64])
    call varve_protect_slab(v, 'T#right', right, [6_int64, 9_int64], [1_int64, 5_int64], [0_int64, 1_int64])
    call varve_protect_list(v, 'particles', particles)
    call varve_protect_shared(v, 'step', step)
    call varve_checkpoint(v)
    call varve_close(v)
  end subroutine

  subroutine restart()
    type(varve_session) :: v
    real(real64), allocatable, target :: T(:, :)
    real, allocatable, target :: particles(:, :)
    integer, target :: step
    integer(int64) :: share, total
    logical :: found
    integer :: i, j

    allocate (T(6, 9))
    T = 0
    call varve_open(v, 'mem:parts', 'run', 'mode=sync')
    call varve_list_share(v, 'particles', share, total, found)
    call check(found .and. share == 10 .and. total == 10, 'share of a list')
    allocate (particles(3, share))
    call varve_protect_slab(v, 'T', T, [6_int64, 9_int64], [1_int64, 1_int64])
    call varve_protect_list(v, 'particles', particles)
    call varve_protect_shared(v, 'step', step)
    call varve_restart(v, found)
    call check(found .and. step == 7, 'restarted')
    do j = 1, 9
      do i = 1, 6
        call check(T(i, j) == cell(i, j), 'an element')
      end do
    end do
    call check(all(particles(:, 10) == 10) .and. all(particles(:, 1) == 1), 'the list')
    call varve_checkpoint(v)
    call varve_close(v)
  end subroutine

  subroutine refused()
    type(varve_session) :: v
    real(real64), target :: T(6, 9)
    character(5), target :: words(3)
    integer, target :: one
    integer :: stat
    character(200) :: msg

    call varve_open(v, 'mem:parts', 'other', 'mode=sync')
    call varve_protect_slab(v, 'T', T, [6_int64, 9_int64], [1_int64], stat=stat, errmsg=msg)
    call check(stat == varve_einval .and. index(msg, 'each dimension') > 0, 'too few numbers')
    call varve_protect_slab(v, 'T', T, [6_int64, 9_int64], [0_int64, 1_int64], stat=stat, errmsg=msg)
    call check(stat == varve_einval .and. index(msg, 'counted from 1') > 0, 'start 0')
    call varve_protect_slab(v, 'T', T, [6_int64, 9_int64], [1_int64, 2_int64], stat=stat, errmsg=msg)
    call check(stat == varve_einval .and. index(msg, 'not within') > 0, 'outside')
    call varve_protect_slab(v, 'T', T, [6_int64, 9_int64], [1_int64, 1_int64], [4_int64, 0_int64], stat=stat, errmsg=msg)
    call check(stat == varve_einval .and. index(msg, 'ghost') > 0, 'ghost cells')
    call varve_protect_slab(v, 'T', T(1:6:2, :), [3_int64, 9_int64], [1_int64, 1_int64], stat=stat, errmsg=msg)
    call check(stat == varve_einval .and. index(msg, 'not contiguous') > 0, 'a section with gaps')
    call varve_protect_slab(v, 'words', words, [3_int64, 5_int64], [1_int64, 1_int64], stat=stat, errmsg=msg)
    call check(stat == varve_einval, 'characters')
    call varve_protect_list(v, 'one', one, stat=stat, errmsg=msg)
    call check(stat == varve_einval .and. index(msg, 'last dimension') > 0, 'a list without dimension')
    call varve_close(v)
  end subroutine
end program
