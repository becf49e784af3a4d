! varve: checkpoint-restart that stores only what is new, for Fortran programs.
!
!   use varve
!   type(varve_session) :: v
!   call varve_open(v, 'ckpt', 'heat', 'keep=3')        ! a store, a lineage, options
!   call varve_protect(v, 'step', step)                  ! what to save: variables and arrays of any rank
!   call varve_protect(v, 'T', T)
!   call varve_restart(v, restarted)                     ! fills them, if there is an epoch already
!   do while (step < steps)
!     if (varve_due(v)) call varve_checkpoint(v)
!     ...
!   end do
!   call varve_close(v)
!
! The words of include/varve/varve.h hold here, too. Every call that can fail takes stat and errmsg, as ALLOCATE does: stat is 0 or
! one of the codes below; without stat the program ends with the reason.
!
! Variables that are saved should have the TARGET attribute, or lie in a module or in COMMON: the library looks at them between
! calls.
module varve
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  private
  public :: varve_open, varve_close, varve_is_open, varve_last_error, varve_strerror, varve_version
  public :: varve_protect, varve_protect_bytes, varve_unprotect, varve_untrack, varve_refine, varve_alloc, varve_free
  public :: varve_checkpoint, varve_checkpoint_on_stream, varve_epoch, varve_test, varve_wait, varve_on_done, varve_due
  public :: varve_restart, varve_restart_region, varve_region, varve_stats, varve_done, varve_adopt

  integer, parameter, public :: varve_ok = 0, &
    varve_einval = -1, &    ! a bad argument, a bad option, a wrong order of calls
    varve_enomem = -2, &    ! out of memory
    varve_eio = -3, &       ! a disk, a network or a system call failed
    varve_enoent = -4, &    ! no such store, lineage, epoch or region
    varve_edamaged = -5, &  ! stored bytes are not what was written
    varve_ebusy = -6, &     ! another writer has the lineage
    varve_emismatch = -7, & ! a region's size or type differs from what is stored
    varve_enospc = -8, &    ! the store is full
    varve_enotsup = -9, &   ! not built in
    varve_edenied = -10, &  ! permission or credentials
    varve_epeer = -11       ! another rank failed, or did not come in time

  integer, parameter, public :: varve_bytes = 0, varve_i8 = 1, varve_u8 = 2, varve_i16 = 3, varve_u16 = 4, varve_i32 = 5, &
    varve_u32 = 6, varve_i64 = 7, varve_u64 = 8, varve_f32 = 9, varve_f64 = 10, varve_c64 = 11, varve_c128 = 12
  integer, parameter, public :: varve_max_dims = 16, varve_max_name = 255
  integer(int64), parameter, public :: varve_latest = -1_int64

  abstract interface
    ! Told once of every epoch, on a thread of the library, when it has become durable (code 0) or has failed. It may not call into
    ! the session, but varve_last_error says why. A procedure of a module, or external: not one that is internal to a procedure.
    subroutine varve_done(epoch, code)
      import :: int64
      integer(int64), intent(in) :: epoch
      integer, intent(in) :: code
    end subroutine
  end interface

  type :: callback
    procedure(varve_done), pointer, nopass :: call => null()
  end type

  type, bind(c), public :: varve_session
    private
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: done = c_null_ptr ! a callback
  end type

  ! What an epoch knows of a region. The shape is in Fortran's order, and has one extent for each dimension; of characters the first
  ! is their length. A scalar has the shape [1], a region of bytes none.
  type, public :: varve_region_info
    integer(int64) :: bytes = 0
    integer :: type = varve_bytes
    integer(int64), allocatable :: shape(:)
  end type

  type, bind(c), public :: varve_access ! first writes to pages, by what they met
    integer(c_int64_t) :: pages
    integer(c_int64_t) :: bytes
  end type

  type, bind(c), public :: varve_statistics ! struct varve_stats of varve.h, which says what they mean
    integer(c_int64_t) :: epoch
    integer(c_int64_t) :: bytes_memory
    integer(c_int64_t) :: bytes_unchanged
    integer(c_int64_t) :: bytes_zero
    integer(c_int64_t) :: bytes_dup_time
    integer(c_int64_t) :: bytes_dup_space
    integer(c_int64_t) :: bytes_dup_ranks
    integer(c_int64_t) :: bytes_new
    integer(c_int64_t) :: bytes_stored
    integer(c_int64_t) :: bytes_layer
    real(c_double) :: seconds_blocked
    integer(c_int64_t) :: bytes_dirty
    integer(c_int64_t) :: bytes_copied
    type(varve_access) :: wait
    type(varve_access) :: cow
    type(varve_access) :: avoided
    type(varve_access) :: after
    real(c_double) :: seconds_faults
    real(c_double) :: seconds_waits
    real(c_double) :: seconds_flush
    real(c_double) :: bandwidth
    integer(c_int64_t) :: bytes_lent
    real(c_double) :: seconds_ranks
  end type

  type, bind(c) :: c_region_info
    integer(c_int64_t) :: bytes
    integer(c_int) :: type
    integer(c_int) :: ndim
    integer(c_int64_t) :: shape(varve_max_dims)
  end type

  ! In C (array.c), and called without a procedure of Fortran in between: on the way through one, gfortran copies what has gaps, and
  ! the copy would be taken for the array. errmsg is a character(*); gfortran 12 breaks down over one that is optional there.
  interface
    ! A variable or array of any rank, of an intrinsic type of any kind, where it lies: an array that is allocated anew, or moved by
    ! MOVE_ALLOC or by an assignment that changes its size, is protected anew. A section with gaps is refused.
    subroutine varve_protect(session, name, x, stat, errmsg) bind(c, name='varve_fortran_protect')
      import :: varve_session, c_int
      type(varve_session), intent(in) :: session
      character(*), intent(in) :: name
      type(*), dimension(..), target, intent(inout) :: x
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine

    ! One region, into a variable that need not be protected.
    subroutine varve_restart_region(session, name, x, epoch, stat, errmsg) bind(c, name='varve_fortran_restart_region')
      import :: varve_session, c_int, c_int64_t
      type(varve_session), intent(in) :: session
      character(*), intent(in) :: name
      type(*), dimension(..), intent(inout) :: x
      integer(c_int64_t), intent(in), optional :: epoch
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine
  end interface

  interface
    type(c_ptr) function c_last_error() bind(c, name='varve_last_error')
      import :: c_ptr
    end function
    type(c_ptr) function c_strerror(code) bind(c, name='varve_strerror')
      import :: c_ptr, c_int
      integer(c_int), value :: code
    end function
    type(c_ptr) function c_version() bind(c, name='varve_version')
      import :: c_ptr
    end function
    integer(c_int) function c_fail(code, message) bind(c, name='varve_fail')
      import :: c_int, c_char
      integer(c_int), value :: code
      character(kind=c_char), intent(in) :: message(*)
    end function
    integer(c_size_t) function c_strlen(words) bind(c, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: words
    end function
    integer(c_int) function c_open(store, lineage, options, handle) bind(c, name='varve_open')
      import :: c_ptr, c_int, c_char
      character(kind=c_char), intent(in) :: store(*), lineage(*), options(*)
      type(c_ptr), intent(out) :: handle
    end function
    integer(c_int) function c_close(v) bind(c, name='varve_close')
      import :: c_ptr, c_int
      type(c_ptr), value :: v
    end function
    integer(c_int) function c_protect(v, name, p, bytes) bind(c, name='varve_protect')
      import :: c_ptr, c_int, c_char, c_size_t
      type(c_ptr), value :: v, p
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function c_unprotect(v, name) bind(c, name='varve_unprotect')
      import :: c_ptr, c_int, c_char
      type(c_ptr), value :: v
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_untrack(v, name) bind(c, name='varve_untrack')
      import :: c_ptr, c_int, c_char
      type(c_ptr), value :: v
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_refine(v, name, method, grain) bind(c, name='varve_refine')
      import :: c_ptr, c_int, c_char, c_size_t
      type(c_ptr), value :: v
      character(kind=c_char), intent(in) :: name(*), method(*)
      integer(c_size_t), value :: grain
    end function
    type(c_ptr) function c_alloc(v, name, bytes) bind(c, name='varve_alloc')
      import :: c_ptr, c_char, c_size_t
      type(c_ptr), value :: v
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function c_free(v, p) bind(c, name='varve_free')
      import :: c_ptr, c_int
      type(c_ptr), value :: v, p
    end function
    integer(c_int) function c_checkpoint(v) bind(c, name='varve_checkpoint')
      import :: c_ptr, c_int
      type(c_ptr), value :: v
    end function
    integer(c_int) function c_checkpoint_on_stream(v, stream) bind(c, name='varve_checkpoint_on_stream')
      import :: c_ptr, c_int
      type(c_ptr), value :: v, stream
    end function
    integer(c_int64_t) function c_epoch(v) bind(c, name='varve_epoch')
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: v
    end function
    integer(c_int) function c_test(v, epoch) bind(c, name='varve_test')
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
    end function
    integer(c_int) function c_wait(v, epoch) bind(c, name='varve_wait')
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
    end function
    integer(c_int) function c_on_done(v, fn, arg) bind(c, name='varve_on_done')
      import :: c_ptr, c_int, c_funptr
      type(c_ptr), value :: v, arg
      type(c_funptr), value :: fn
    end function
    integer(c_int) function c_due(v) bind(c, name='varve_due')
      import :: c_ptr, c_int
      type(c_ptr), value :: v
    end function
    integer(c_int) function c_restart(v, epoch) bind(c, name='varve_restart')
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
    end function
    integer(c_int) function c_region(v, epoch, name, info) bind(c, name='varve_region')
      import :: c_ptr, c_int, c_int64_t, c_char, c_region_info
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
      character(kind=c_char), intent(in) :: name(*)
      type(c_region_info), intent(out) :: info
    end function
    integer(c_int) function c_stats(v, stats) bind(c, name='varve_stats')
      import :: c_ptr, c_int, varve_statistics
      type(c_ptr), value :: v
      type(varve_statistics), intent(out) :: stats
    end function
  end interface

contains

  ! ---- errors and words ----------------------------------------------------------------------------------------------------

  function words_of(p) result(words)
    type(c_ptr), intent(in) :: p
    character(:), allocatable :: words
    character(kind=c_char), pointer :: from(:)
    integer :: i

    allocate (character(int(c_strlen(p))) :: words)
    call c_f_pointer(p, from, [len(words)])
    do i = 1, len(words)
      words(i:i) = from(i)
    end do
  end function

  ! The calling thread's last failure, in words.
  function varve_last_error() result(words)
    character(:), allocatable :: words

    words = words_of(c_last_error())
  end function

  function varve_strerror(code) result(words)
    integer, intent(in) :: code
    character(:), allocatable :: words

    words = words_of(c_strerror(int(code, c_int)))
  end function

  function varve_version() result(words)
    character(:), allocatable :: words

    words = words_of(c_version())
  end function

  ! Trailing blanks of names are Fortran's, not the name's.
  function c_words(words) result(terminated)
    character(*), intent(in) :: words
    character(:), allocatable :: terminated

    terminated = trim(words)//c_null_char
  end function

  subroutine conclude(code, stat, errmsg)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    if (present(stat)) stat = min(int(code), 0)
    if (code >= 0) return
    if (present(errmsg)) errmsg = varve_last_error()
    if (.not. present(stat)) call give_up()
  end subroutine

  subroutine give_up() bind(c, name='varve_fortran_give_up')
    error stop varve_last_error()
  end subroutine

  ! ---- a session -----------------------------------------------------------------------------------------------------------

  ! As the only writer of the lineage.
  subroutine varve_open(session, store, lineage, options, stat, errmsg)
    type(varve_session), intent(inout) :: session
    character(*), intent(in) :: store, lineage
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: given
    type(c_ptr) :: handle
    integer(c_int) :: rc

    given = ''
    if (present(options)) given = options
    handle = c_null_ptr
    rc = c_open(c_words(store), c_words(lineage), c_words(given), handle)
    call varve_adopt(session, handle, int(rc), stat, errmsg)
  end subroutine

  ! For those who open in another way, with the code that it returned: the handle, a varve * of C, becomes the session's.
  subroutine varve_adopt(session, handle, code, stat, errmsg)
    type(varve_session), intent(inout) :: session
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: code
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: rc

    rc = int(code, c_int)
    if (rc >= 0 .and. c_associated(session%handle)) then
      rc = c_close(handle)
      rc = c_fail(int(varve_einval, c_int), c_words('varve_open: the session is open already; varve_close it first'))
    else if (rc >= 0) then
      session%handle = handle
    end if
    call conclude(rc, stat, errmsg)
  end subroutine

  ! Waits until what was checkpointed is durable, or says why it is not. The session is gone all the same.
  subroutine varve_close(session, stat, errmsg)
    type(varve_session), intent(inout) :: session
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: rc

    rc = c_close(session%handle)
    session%handle = c_null_ptr
    call forget(session)
    call conclude(rc, stat, errmsg)
  end subroutine

  pure function varve_is_open(session) result(yes)
    type(varve_session), intent(in) :: session
    logical :: yes

    yes = c_associated(session%handle)
  end function

  ! ---- what to save --------------------------------------------------------------------------------------------------------

  ! So many bytes at p, whatever they are: p = c_loc(x), bytes = storage_size(x) / 8.
  subroutine varve_protect_bytes(session, name, p, bytes, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: p
    integer(int64), intent(in) :: bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_protect(session%handle, c_words(name), p, int(bytes, c_size_t)), stat, errmsg)
  end subroutine

  ! Before the array is deallocated or moved: it waits until nobody reads from there.
  subroutine varve_unprotect(session, name, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_unprotect(session%handle, c_words(name)), stat, errmsg)
  end subroutine

  subroutine varve_untrack(session, name, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_untrack(session%handle, c_words(name)), stat, errmsg)
  end subroutine

  subroutine varve_refine(session, name, grain, method, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    integer, intent(in) :: grain
    character(*), intent(in), optional :: method
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: how

    how = 'run'
    if (present(method)) how = method
    call conclude(c_refine(session%handle, c_words(name), c_words(how), int(grain, c_size_t)), stat, errmsg)
  end subroutine

  ! Zeroed, page-aligned memory that is a region from the start; c_f_pointer makes an array of it. Whatever fails, errmsg knows
  ! better than stat.
  subroutine varve_alloc(session, name, bytes, p, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    integer(int64), intent(in) :: bytes
    type(c_ptr), intent(out) :: p
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: code

    p = c_alloc(session%handle, c_words(name), int(bytes, c_size_t))
    code = merge(varve_ok, varve_enomem, c_associated(p))
    if (code < 0 .and. .not. c_associated(session%handle)) code = varve_einval
    call conclude(int(code, c_int), stat, errmsg)
  end subroutine

  subroutine varve_free(session, p, stat, errmsg)
    type(varve_session), intent(in) :: session
    type(c_ptr), intent(inout) :: p
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: rc

    rc = c_free(session%handle, p)
    if (rc >= 0) p = c_null_ptr
    call conclude(rc, stat, errmsg)
  end subroutine

  ! ---- checkpoint ----------------------------------------------------------------------------------------------------------

  subroutine varve_checkpoint(session, stat, errmsg)
    type(varve_session), intent(in) :: session
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_checkpoint(session%handle), stat, errmsg)
  end subroutine

  subroutine varve_checkpoint_on_stream(session, stream, stat, errmsg)
    type(varve_session), intent(in) :: session
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_checkpoint_on_stream(session%handle, stream), stat, errmsg)
  end subroutine

  ! The newest of this session, taken or restarted from; 0: none.
  function varve_epoch(session) result(epoch)
    type(varve_session), intent(in) :: session
    integer(int64) :: epoch

    epoch = c_epoch(session%handle)
  end function

  ! Has it become durable?
  function varve_test(session, epoch, stat, errmsg) result(durable)
    type(varve_session), intent(in) :: session
    integer(int64), intent(in) :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    logical :: durable
    integer(c_int) :: rc

    rc = c_test(session%handle, epoch)
    durable = rc > 0
    call conclude(rc, stat, errmsg)
  end function

  ! Until it has; without an epoch, the newest, if there is one.
  subroutine varve_wait(session, epoch, stat, errmsg)
    type(varve_session), intent(in) :: session
    integer(int64), intent(in), optional :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: which
    integer(c_int) :: rc

    which = varve_latest
    if (present(epoch)) which = epoch
    rc = c_wait(session%handle, which)
    call conclude(rc, stat, errmsg)
  end subroutine

  ! Without `done`: nobody is told any more.
  subroutine varve_on_done(session, done, stat, errmsg)
    type(varve_session), intent(inout) :: session
    procedure(varve_done), optional :: done
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(callback), pointer :: fresh
    integer(c_int) :: rc

    rc = c_on_done(session%handle, c_null_funptr, c_null_ptr)
    if (rc >= 0) call forget(session) ! nobody is being told at this moment
    if (rc >= 0 .and. present(done)) then
      allocate (fresh)
      fresh%call => done
      session%done = c_loc(fresh)
      rc = c_on_done(session%handle, c_funloc(tell), session%done)
    end if
    call conclude(rc, stat, errmsg)
  end subroutine

  subroutine forget(session)
    type(varve_session), intent(inout) :: session
    type(callback), pointer :: done

    if (.not. c_associated(session%done)) return
    call c_f_pointer(session%done, done)
    deallocate (done)
    session%done = c_null_ptr
  end subroutine

  subroutine tell(arg, epoch, rc) bind(c)
    type(c_ptr), value :: arg
    integer(c_int64_t), value :: epoch
    integer(c_int), value :: rc
    type(callback), pointer :: done

    call c_f_pointer(arg, done)
    call done%call(int(epoch, int64), int(rc))
  end subroutine

  ! Is it time for a checkpoint?
  function varve_due(session, stat, errmsg) result(yes)
    type(varve_session), intent(in) :: session
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    logical :: yes
    integer(c_int) :: rc

    rc = c_due(session%handle)
    yes = rc > 0
    call conclude(rc, stat, errmsg)
  end function

  ! ---- restart -------------------------------------------------------------------------------------------------------------

  ! Fills what is protected with what it held in the epoch, or in the newest that is whole. restarted = .false.: there is none yet.
  subroutine varve_restart(session, restarted, epoch, stat, errmsg)
    type(varve_session), intent(in) :: session
    logical, intent(out), optional :: restarted
    integer(int64), intent(in), optional :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: rc

    rc = c_restart(session%handle, one_of(epoch))
    if (present(restarted)) restarted = rc > 0
    call conclude(rc, stat, errmsg)
  end subroutine

  pure function one_of(epoch) result(which)
    integer(int64), intent(in), optional :: epoch
    integer(c_int64_t) :: which

    which = varve_latest
    if (present(epoch)) which = epoch
  end function

  ! For programs that allocate by what was saved.
  subroutine varve_region(session, name, info, epoch, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    type(varve_region_info), intent(inout) :: info
    integer(int64), intent(in), optional :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_region_info) :: from
    integer(c_int) :: rc

    rc = c_region(session%handle, one_of(epoch), c_words(name), from)
    if (rc >= 0) then
      info%bytes = from%bytes
      info%type = from%type
      info%shape = from%shape(from%ndim:1:-1)
    end if
    call conclude(rc, stat, errmsg)
  end subroutine

  ! Of the newest checkpoint of this session; waits until it is stored.
  subroutine varve_stats(session, stats, stat, errmsg)
    type(varve_session), intent(in) :: session
    type(varve_statistics), intent(out) :: stats
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_stats(session%handle, stats), stat, errmsg)
  end subroutine
end module
