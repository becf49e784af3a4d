! The module varve: a session from its opening to its end, and everything that may go wrong with it.
module told
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  integer(int64), volatile :: epochs = 0, last = 0

contains

  subroutine count_epoch(epoch, code)
    integer(int64), intent(in) :: epoch
    integer, intent(in) :: code

    if (code == 0) epochs = epochs + 1
    last = epoch
  end subroutine
end module

module program_of_a_user
  use varve
  implicit none

contains

  ! Somebody's own procedure with optional arguments, which are handed on.
  subroutine save_all(v, x, stat, errmsg)
    type(varve_session), intent(in) :: v
    real, target, intent(inout) :: x(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call varve_protect(v, 'x', x, stat, errmsg)
  end subroutine
end module

program test_module
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use varve
  use told
  use program_of_a_user
  implicit none
  integer :: failures = 0

  call life()
  call locals()
  call kept()
  call words()
  call wrong_use()
  call memory()
  call callbacks()
  call handed_on()
  if (failures > 0) error stop 1

contains

  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what

    if (fine) return
    failures = failures + 1
    print '(3a)', 'wrong: ', what, ' ('//varve_last_error()//')'
  end subroutine

  subroutine check_refused(stat, errmsg, code, part)
    integer, intent(in) :: stat, code
    character(*), intent(in) :: errmsg, part

    call check(stat == code .and. index(errmsg, part) > 0, part//' <- '//trim(errmsg))
  end subroutine

  subroutine life()
    type(varve_session) :: v
    type(varve_statistics) :: st
    integer, target :: step
    real(real64), target :: T(30, 20, 10)
    integer(int64) :: first
    integer :: stat
    logical :: restarted

    call check(.not. varve_is_open(v), 'a session is closed at first')
    call varve_open(v, 'mem:life', 'a', 'codec=none')
    call check(varve_is_open(v), 'open')
    step = 1
    T = 1.5_real64
    call varve_protect(v, 'step', step)
    call varve_protect(v, 'T', T)
    call varve_restart(v, restarted)
    call check(.not. restarted .and. step == 1, 'nothing to restart from')
    call check(varve_epoch(v) == 0, 'no epoch yet')
    call varve_wait(v)
    call varve_wait(v, varve_latest)
    call varve_wait(v, 1_int64, stat)
    call check(stat == varve_enoent, 'an epoch that never was')
    call varve_stats(v, st, stat)
    call check(stat == varve_enoent, 'no statistics yet')
    call check(varve_due(v), 'it is always time')
    call varve_label(v, '7', stat)
    call check(stat == varve_einval, 'a number is no label')
    call varve_label(v, 'step-7 ')
    call varve_checkpoint(v)
    first = varve_epoch(v)
    call varve_wait(v, varve_latest)
    call check(varve_test(v, first), 'durable')
    step = 2
    T(7, 8, 9) = 2.0_real64
    call varve_checkpoint(v)
    call varve_wait(v)
    call varve_stats(v, st)
    call check(st%epoch == first + 1, 'statistics of the newest')
    call check(st%bytes_memory == c_sizeof(T) + c_sizeof(step), 'bytes_memory')
    call check(st%bytes_memory == st%bytes_unchanged + st%bytes_zero + st%bytes_dup_time + st%bytes_dup_space &
               + st%bytes_dup_ranks + st%bytes_new, 'the bytes add up')
    call check(st%bytes_new > 0 .and. st%bytes_new < 12000 .and. st%seconds_flush > 0, 'only what changed is new')
    call check(st%bytes_lent == 0 .and. st%seconds_ranks == 0.0_real64, 'the last of the statistics')
    step = 99
    T = -1
    call varve_restart(v, restarted)
    call check(restarted .and. step == 2 .and. T(7, 8, 9) == 2.0_real64 .and. T(1, 1, 1) == 1.5_real64, 'the newest')
    call varve_restart(v, restarted, first)
    call check(restarted .and. step == 1 .and. all(T == 1.5_real64), 'the first')
    call varve_close(v)
    call check(.not. varve_is_open(v), 'closed')
    call varve_close(v)
  end subroutine

  ! No TARGET: the compiler must not believe that it knows what they hold.
  subroutine locals()
    type(varve_session) :: v
    integer :: k, i
    real :: x(3)

    call varve_open(v, 'mem:locals', 'a')
    call varve_protect(v, 'k', k)
    call varve_protect(v, 'x', x)
    k = 1
    x = [1.0, 2.0, 3.0]
    call varve_checkpoint(v)
    call varve_wait(v)
    k = 2
    x = 0
    call varve_restart(v)
    call check(k == 1 .and. x(2) == 2.0, 'a local variable was restored')
    do i = 1, 3
      k = k + i
      x(i) = real(k)
      call varve_checkpoint(v)
    end do
    call varve_wait(v)
    k = 0
    x = 0
    call varve_restart(v)
    call check(k == 7 .and. all(x == [2.0, 4.0, 7.0]), 'local variables were seen as they changed')
    call varve_close(v)
  end subroutine

  ! A second session knows nothing but names: it allocates by what was saved.
  subroutine kept()
    type(varve_session) :: v
    type(varve_region_info) :: info
    integer, allocatable :: A(:, :), B(:, :)
    character(5) :: names(3)
    character(:), allocatable, save :: given(:)
    integer :: i, stat
    character(400) :: msg

    allocate (A(4, 7))
    A = reshape([(i, i=1, 28)], [4, 7])
    names = ['one  ', 'two  ', 'three']
    call varve_open(v, 'mem:kept', 'a')
    call varve_protect(v, 'A', A)
    call varve_protect(v, 'names', names)
    call varve_checkpoint(v)
    call varve_wait(v)
    A = 0

    call varve_region(v, 'A', info)
    call check(info%type == varve_i32 .and. info%bytes == 112 .and. all(info%shape == [4, 7]), 'the shape of A, as Fortran has it')
    allocate (B(info%shape(1), info%shape(2)))
    call varve_restart_region(v, 'A', B)
    call check(all(B == reshape([(i, i=1, 28)], [4, 7])), 'B has what A had')
    call varve_region(v, 'names', info)
    call check(info%type == varve_u8 .and. all(info%shape == [5, 3]), 'characters have their length first')
    allocate (character(info%shape(1)) :: given(info%shape(2)))
    call varve_restart_region(v, 'names', given)
    call check(all(given == ['one  ', 'two  ', 'three']), 'names')
    call varve_restart_region(v, 'A', given, stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_emismatch, 'another type')
    call varve_restart_region(v, 'A', B(:, 1:3), stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_emismatch, '112 bytes')
    call varve_restart_region(v, 'A', B(1:2, :), stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_einval, 'not contiguous')
    call varve_restart_region(v, 'C', B, stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_enoent, "no region 'C'")
    call varve_region(v, 'A', info, 77_int64, stat, msg)
    call check_refused(stat, msg, varve_enoent, '77')

    deallocate (A)
    allocate (A(3, 3), source=0)
    call varve_protect(v, 'A', A)
    call varve_restart(v, stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_emismatch, "region 'A' has 36 bytes")
    call varve_close(v)
  end subroutine

  subroutine words()
    type(varve_session) :: v
    character(20) :: store, name
    character(8) :: short
    integer, target :: x
    integer :: stat

    store = 'mem:words'
    name = 'x'
    call varve_open(v, store, 'lineage   ', '   keep=3   ')
    call varve_protect(v, name, x)
    x = 3
    call varve_checkpoint(v)
    x = 4
    call varve_unprotect(v, 'x')
    call varve_restart_region(v, 'x     ', x)
    call check(x == 3, 'trailing blanks do not count')
    call varve_protect(v, '   ', x, stat, short)
    call check(stat == varve_einval .and. short == 'varve_pr', 'errmsg is cut: '//short)
    call varve_protect(v, repeat('n', varve_max_name + 1), x, stat)
    call check(stat == varve_einval, 'a name that is too long')
    call varve_protect(v, repeat('n', 5000), x, stat)
    call check(stat == varve_einval, 'a name of 5000 characters')
    call varve_protect(v, repeat('n', varve_max_name), x, stat)
    call check(stat == varve_ok, 'a name of 255 characters')
    call varve_close(v)
    call check(varve_strerror(varve_ebusy) /= varve_strerror(varve_eio), 'codes in words')
    call check(index(varve_version(), '.') > 0, 'version')
  end subroutine

  subroutine wrong_use()
    type(varve_session) :: v, w
    character(300) :: msg
    integer :: stat
    integer, target :: x
    real, allocatable, target, save :: none(:)
    type :: pair
      integer :: a, b
    end type
    type(pair), target :: p

    call varve_checkpoint(v, stat, msg)
    call check_refused(stat, msg, varve_einval, 'varve_checkpoint: no session')
    call varve_protect(v, 'x', x, stat, msg)
    call check_refused(stat, msg, varve_einval, 'no session')
    call varve_wait(v, stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_einval, 'varve_wait: no session')
    call varve_open(v, 'mem:wrong', 'a', 'codec=gzip', stat, msg)
    call check_refused(stat, msg, varve_einval, 'gzip')
    call check(.not. varve_is_open(v), 'not opened')
    call varve_open(v, 'mem:wrong', 'a')
    call varve_open(w, 'mem:wrong', 'a', stat=stat, errmsg=msg)
    call check(stat == varve_ebusy .and. .not. varve_is_open(w), 'one writer')
    call varve_open(v, 'mem:wrong', 'b', stat=stat, errmsg=msg)
    call check_refused(stat, msg, varve_einval, 'open already')
    call varve_open(w, 'mem:wrong', 'b') ! the attempt before has let go of it
    call varve_close(w)
    call varve_protect(v, 'none', none, stat, msg)
    call check_refused(stat, msg, varve_einval, 'not allocated')
    call varve_protect(v, 'p', p, stat, msg)
    call check_refused(stat, msg, varve_einval, 'derived type')
    call varve_protect_bytes(v, 'p', c_loc(p), storage_size(p, int64)/8)
    call varve_unprotect(v, 'nix', stat, msg)
    call check_refused(stat, msg, varve_enoent, "no region 'nix'")
    msg = 'untouched'
    call varve_protect(v, 'x', x, stat, msg)
    call check(stat == 0 .and. msg == 'untouched', 'errmsg stays as it is when nothing is wrong')
    call varve_untrack(v, 'x')
    call varve_refine(v, 'x', 64)
    call varve_refine(v, 'x', 128, 'tree')
    call varve_refine(v, 'x', 128, 'oak', stat, msg)
    call check_refused(stat, msg, varve_einval, "no method 'oak'")
    p = pair(3, 4)
    x = 5
    call varve_checkpoint(v)
    p = pair(0, 0)
    call varve_restart(v)
    call check(p%a == 3 .and. p%b == 4, 'bytes')
    call varve_close(v)
  end subroutine

  subroutine memory()
    type(varve_session) :: v
    type(c_ptr) :: p
    integer, pointer :: x(:)
    integer, target :: not_ours
    integer :: stat

    call varve_open(v, 'mem:memory', 'a')
    call varve_alloc(v, 'x', 4000_int64, p)
    call c_f_pointer(p, x, [1000])
    call check(all(x == 0), 'zeroed')
    x = 7
    call varve_checkpoint(v)
    x = 8
    call varve_restart(v)
    call check(all(x == 7), 'memory of varve_alloc')
    call varve_alloc(v, 'x', 4_int64, p, stat)
    call check(stat < 0, 'twice')
    p = c_loc(x)
    call varve_free(v, p)
    call check(.not. c_associated(p), 'given back')
    p = c_loc(not_ours)
    call varve_free(v, p, stat)
    call check(stat == varve_einval, 'not from varve_alloc')
    call varve_close(v)
  end subroutine

  subroutine callbacks()
    type(varve_session) :: v
    integer, target :: x
    integer :: i

    call varve_open(v, 'mem:told', 'a')
    call varve_protect(v, 'x', x)
    call varve_on_done(v, count_epoch)
    call varve_on_done(v, count_epoch)
    do x = 1, 3
      call varve_checkpoint(v)
    end do
    call varve_wait(v)
    do i = 1, 3
      call check(varve_test(v, int(i, int64)), 'durable')
    end do
    call varve_on_done(v)
    call check(epochs == 3 .and. last == 3, 'told of three epochs')
    call varve_checkpoint(v)
    call varve_wait(v)
    call varve_on_done(v)
    call check(epochs == 3, 'told no more')
    call varve_on_done(v, count_epoch)
    call varve_checkpoint(v)
    call varve_close(v)
    call check(epochs == 4, 'told until the end')
  end subroutine

  subroutine handed_on()
    type(varve_session) :: v
    real, target :: x(6)
    integer :: stat
    character(200) :: msg

    call varve_open(v, 'mem:on', 'a')
    call save_all(v, x)
    call save_all(v, x(1:6:2), stat)
    call check(stat == varve_einval, 'handed on: stat')
    call save_all(v, x(1:6:2), stat, msg)
    call check_refused(stat, msg, varve_einval, 'dimension 1')
    call varve_close(v)
  end subroutine
end program
