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
  public :: varve_checkpoint, varve_checkpoint_on_stream, varve_epoch, varve_protected_epoch
  public :: varve_test, varve_wait, varve_on_done, varve_due
  public :: varve_label
  public :: varve_restart, varve_restart_region, varve_region, varve_stats, varve_done, varve_adopt
  public :: varve_protect_slab, varve_protect_shared, varve_protect_list, varve_list_share
  public :: varve_protect_arrays, varve_protect_records, varve_wait_for, varve_set_log, varve_log
  public :: varve_reader_open, varve_reader_close, varve_reader_lineages, varve_reader_epochs, varve_reader_latest
  public :: varve_reader_find
  public :: varve_reader_regions, varve_reader_read, varve_reader_read_part

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
    varve_u32 = 6, varve_i64 = 7, varve_u64 = 8, varve_f32 = 9, varve_f64 = 10, varve_c64 = 11, varve_c128 = 12, &
    varve_bf16 = 13, varve_f16 = 14, varve_f8_e4m3 = 15, varve_f8_e5m2 = 16, varve_record = 17
  integer, parameter, public :: varve_max_dims = 16, varve_max_name = 1023
  integer(int64), parameter, public :: varve_latest = -1_int64
  integer, parameter, public :: varve_global = -1 ! a rank of a reader: what all ranks have together

  integer, parameter, public :: varve_log_error = 0, varve_log_warn = 1, varve_log_info = 2

  abstract interface
    ! A message of the library, on any thread; one at a time. It may not call into a session or write into a region.
    subroutine varve_log(level, sentence)
      integer, intent(in) :: level
      character(*), intent(in) :: sentence
    end subroutine

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

  procedure(varve_log), pointer :: logger => null()

  ! One of many arrays: p = c_loc(x), and the shape in Fortran's order; of varve_bytes the number of bytes.
  type, public :: varve_array
    character(:), allocatable :: name
    type(c_ptr) :: p = c_null_ptr
    integer :: type = varve_bytes
    integer(int64), allocatable :: shape(:)
  end type

  type, bind(c) :: c_array
    type(c_ptr) :: name
    type(c_ptr) :: p
    integer(c_int) :: type
    integer(c_int) :: ndim
    type(c_ptr) :: shape
  end type

  type, bind(c), public :: varve_reader
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, public :: varve_stored_epoch
    integer(int64) :: epoch, parent, time_ns, bytes_memory, bytes_stored, bytes_layer
    integer :: ranks
    logical :: complete
    character(:), allocatable :: problem ! '' if it is complete
    character(64), allocatable :: labels(:)
  end type

  type, bind(c) :: c_stored_epoch
    integer(c_int64_t) :: epoch, parent, time_ns, bytes_memory, bytes_stored, bytes_layer
    integer(c_int32_t) :: ranks
    integer(c_int) :: complete
    type(c_ptr) :: problem, label
    integer(c_size_t) :: n_labels
  end type

  ! The shape is in Fortran's order; a region of bytes has none.
  ! A component of a derived type: its place in a record, in bytes, and the bytes of all its elements.
  type, public :: varve_field
    character(:), allocatable :: name
    integer :: type = varve_bytes
    integer(int64) :: offset = 0, bytes = 0
  end type

  type, bind(c) :: c_field
    type(c_ptr) :: name
    integer(c_int) :: type
    integer(c_size_t) :: offset
    integer(c_size_t) :: bytes
  end type

  type, public :: varve_stored_region
    character(:), allocatable :: name
    integer(int64) :: bytes
    integer :: type, element
    integer(int64), allocatable :: shape(:)
    type(varve_field), allocatable :: fields(:) ! of varve_record; else none
  end type

  type, bind(c) :: c_stored_region
    type(c_ptr) :: name
    integer(c_int64_t) :: bytes
    integer(c_int) :: type
    integer(c_int32_t) :: element
    integer(c_int) :: ndim
    integer(c_int64_t) :: shape(varve_max_dims)
    type(c_ptr) :: field
    integer(c_size_t) :: n_fields
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
    ! A variable or array of any rank, of an intrinsic type of any kind, where it lies: an array that is allocated again, or moved by
    ! MOVE_ALLOC or by an assignment that changes its size, is protected again. A section with gaps is refused.
    subroutine varve_protect(session, name, x, stat, errmsg) bind(c, name='varve_fortran_protect')
      import :: varve_session, c_int
      type(varve_session), intent(in) :: session
      character(*), intent(in) :: name
      type(*), dimension(..), target, intent(inout) :: x
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine

    ! This rank's part of a global array of shape `global`: x has ghost(i) cells before and behind the part in dimension i, and the part
    ! begins at element start(i), counted from 1. A restart on another number of ranks fills it from the parts that overlap it.
    subroutine varve_protect_slab(session, name, x, global, start, ghost, stat, errmsg) bind(c, name='varve_fortran_protect_slab')
      import :: varve_session, c_int, c_int64_t
      type(varve_session), intent(in) :: session
      character(*), intent(in) :: name
      type(*), dimension(..), target, intent(inout) :: x
      integer(c_int64_t), intent(in) :: global(:), start(:)
      integer(c_int64_t), intent(in), optional :: ghost(:)
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine

    ! What is equal on all ranks.
    subroutine varve_protect_shared(session, name, x, stat, errmsg) bind(c, name='varve_fortran_protect_shared')
      import :: varve_session, c_int
      type(varve_session), intent(in) :: session
      character(*), intent(in) :: name
      type(*), dimension(..), target, intent(inout) :: x
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine

    ! This rank's part of a list, which the last dimension of x counts.
    subroutine varve_protect_list(session, name, x, stat, errmsg) bind(c, name='varve_fortran_protect_list')
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

  ! In C for the same reason.
  interface
    ! As many bytes as x has, from byte `start` (1 is the first) of the region on.
    subroutine varve_reader_read(reader, name, x, start, epoch, rank, stat, errmsg) bind(c, name='varve_fortran_reader_read')
      import :: varve_reader, c_int, c_int64_t
      type(varve_reader), intent(in) :: reader
      character(*), intent(in) :: name
      type(*), dimension(..), intent(inout) :: x
      integer(c_int64_t), intent(in), optional :: start, epoch
      integer(c_int), intent(in), optional :: rank
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine

    ! The part of an array that has x's shape and begins at the element `start`: [1, 1] is the first of two dimensions.
    subroutine varve_reader_read_part(reader, name, x, start, epoch, rank, stat, errmsg) &
      bind(c, name='varve_fortran_reader_read_part')
      import :: varve_reader, c_int, c_int64_t
      type(varve_reader), intent(in) :: reader
      character(*), intent(in) :: name
      type(*), dimension(..), intent(inout) :: x
      integer(c_int64_t), intent(in), optional :: start(:)
      integer(c_int64_t), intent(in), optional :: epoch
      integer(c_int), intent(in), optional :: rank
      integer(c_int), intent(out), optional :: stat
      type(*), dimension(..), intent(inout), optional :: errmsg
    end subroutine
  end interface

  interface
    integer(c_int) function c_protect_arrays(v, array, n) bind(c, name='varve_protect_arrays')
      import :: c_ptr, c_int, c_size_t, c_array
      type(c_ptr), value :: v
      type(c_array), intent(in) :: array(*)
      integer(c_size_t), value :: n
    end function
    integer(c_int) function c_protect_records(v, name, p, n, bytes, field, n_fields) bind(c, name='varve_protect_records')
      import :: c_ptr, c_char, c_int, c_size_t, c_field
      type(c_ptr), value :: v
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: p
      integer(c_size_t), value :: n, bytes
      type(c_field), intent(in) :: field(*)
      integer(c_size_t), value :: n_fields
    end function
    integer(c_int) function c_wait_for(v, epoch, seconds) bind(c, name='varve_wait_for')
      import :: c_ptr, c_int, c_int64_t, c_double
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
      real(c_double), value :: seconds
    end function
    integer(c_int) function c_set_log(fn, arg) bind(c, name='varve_set_log')
      import :: c_ptr, c_int, c_funptr
      type(c_funptr), value :: fn
      type(c_ptr), value :: arg
    end function
    integer(c_int) function c_reader_open(store, lineage, options, handle) bind(c, name='varve_reader_open')
      import :: c_ptr, c_int, c_char
      character(kind=c_char), intent(in) :: store(*), options(*)
      type(c_ptr), value :: lineage
      type(c_ptr), intent(out) :: handle
    end function
    integer(c_int) function c_reader_close(r) bind(c, name='varve_reader_close')
      import :: c_ptr, c_int
      type(c_ptr), value :: r
    end function
    integer(c_int) function c_reader_lineages(r, list, n) bind(c, name='varve_reader_lineages')
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: r
      type(c_ptr), intent(out) :: list
      integer(c_size_t), intent(out) :: n
    end function
    integer(c_int) function c_reader_epochs(r, list, n) bind(c, name='varve_reader_epochs')
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: r
      type(c_ptr), intent(out) :: list
      integer(c_size_t), intent(out) :: n
    end function
    integer(c_int) function c_reader_latest(r, epoch) bind(c, name='varve_reader_latest')
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: r
      integer(c_int64_t), intent(out) :: epoch
    end function
    integer(c_int) function c_reader_find(r, label, epoch) bind(c, name='varve_reader_find')
      import :: c_ptr, c_int, c_int64_t, c_char
      type(c_ptr), value :: r
      character(kind=c_char), intent(in) :: label(*)
      integer(c_int64_t), intent(out) :: epoch
    end function
    integer(c_int) function c_reader_regions(r, epoch, rank, list, n) bind(c, name='varve_reader_regions')
      import :: c_ptr, c_int, c_int32_t, c_int64_t, c_size_t
      type(c_ptr), value :: r
      integer(c_int64_t), value :: epoch
      integer(c_int32_t), value :: rank
      type(c_ptr), intent(out) :: list
      integer(c_size_t), intent(out) :: n
    end function
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
    integer(c_int) function c_list_share(v, epoch, name, share, total) bind(c, name='varve_list_share')
      import :: c_int, c_ptr, c_char, c_int64_t
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(inout) :: share, total
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
    integer(c_int64_t) function c_protected_epoch(v) bind(c, name='varve_protected_epoch')
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
    integer(c_int) function c_label(v, label) bind(c, name='varve_label')
      import :: c_ptr, c_int, c_char
      type(c_ptr), value :: v
      character(kind=c_char), intent(in) :: label(*)
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
    integer(c_int) function c_region(v, epoch, name, info, bytes) bind(c, name='varve_region_sized')
      import :: c_ptr, c_int, c_int64_t, c_char, c_size_t, c_region_info
      type(c_ptr), value :: v
      integer(c_int64_t), value :: epoch
      character(kind=c_char), intent(in) :: name(*)
      type(c_region_info), intent(out) :: info
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function c_stats(v, stats, bytes) bind(c, name='varve_stats_sized')
      import :: c_ptr, c_int, c_size_t, varve_statistics
      type(c_ptr), value :: v
      type(varve_statistics), intent(out) :: stats
      integer(c_size_t), value :: bytes
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

  ! Waits until the last epoch is durable or has failed. An error that a call has reported is not reported again. The session
  ! is closed in any case.
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

  ! Many arrays in one call: all of them, or none.
  subroutine varve_protect_arrays(session, arrays, stat, errmsg)
    type(varve_session), intent(in) :: session
    type(varve_array), intent(in) :: arrays(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_array), allocatable :: list(:)
    character(kind=c_char), allocatable, target :: names(:, :)
    integer(c_size_t), allocatable, target :: shapes(:, :)
    integer :: i, k, n

    allocate (list(size(arrays)), names(varve_max_name + 2, size(arrays)), shapes(varve_max_dims, size(arrays)))
    do i = 1, size(arrays)
      n = 0
      if (allocated(arrays(i)%name)) n = min(len_trim(arrays(i)%name), varve_max_name + 1)
      do k = 1, n
        names(k, i) = arrays(i)%name(k:k)
      end do
      names(n + 1, i) = c_null_char
      n = 0
      if (allocated(arrays(i)%shape)) n = size(arrays(i)%shape)
      do k = 1, min(n, varve_max_dims)
        shapes(k, i) = arrays(i)%shape(n + 1 - k)
      end do
      list(i) = c_array(c_loc(names(1, i)), arrays(i)%p, int(arrays(i)%type, c_int), int(n, c_int), c_loc(shapes(1, i)))
    end do
    call conclude(c_protect_arrays(session%handle, list, size(arrays, kind=c_size_t)), stat, errmsg)
  end subroutine

  ! n records of so many bytes each at p (c_loc of the first), such as an array of a derived type: storage_size(x)/8 is the
  ! bytes of one.
  subroutine varve_protect_records(session, name, p, n, bytes, fields, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: p
    integer(int64), intent(in) :: n, bytes
    type(varve_field), intent(in) :: fields(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field), allocatable :: list(:)
    character(kind=c_char), allocatable, target :: names(:, :)
    integer :: i, k, length

    allocate (list(size(fields)), names(varve_max_name + 2, size(fields)))
    do i = 1, size(fields)
      length = 0
      if (allocated(fields(i)%name)) length = min(len_trim(fields(i)%name), varve_max_name + 1)
      do k = 1, length
        names(k, i) = fields(i)%name(k:k)
      end do
      names(length + 1, i) = c_null_char
      list(i) = c_field(c_loc(names(1, i)), int(fields(i)%type, c_int), int(fields(i)%offset, c_size_t), &
                        int(fields(i)%bytes, c_size_t))
    end do
    call conclude(c_protect_records(session%handle, c_words(name), p, int(n, c_size_t), int(bytes, c_size_t), list, &
                                    size(fields, kind=c_size_t)), stat, errmsg)
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

  ! The newest of this session whose parity is complete; 0: none.
  function varve_protected_epoch(session) result(epoch)
    type(varve_session), intent(in) :: session
    integer(int64) :: epoch

    epoch = c_protected_epoch(session%handle)
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

  ! For at most so many seconds; .false.: not yet, which is no error.
  function varve_wait_for(session, epoch, seconds, stat, errmsg) result(durable)
    type(varve_session), intent(in) :: session
    integer(int64), intent(in) :: epoch
    real(c_double), intent(in) :: seconds
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    logical :: durable
    integer(c_int) :: rc

    rc = c_wait_for(session%handle, epoch, seconds)
    durable = rc > 0
    call conclude(rc, stat, errmsg)
  end function

  ! The messages of the library go to this procedure; without one, to the standard error.
  subroutine varve_set_log(log)
    procedure(varve_log), optional :: log
    integer(c_int) :: rc

    rc = c_set_log(c_null_funptr, c_null_ptr) ! nobody is in the previous one any more
    logger => null()
    if (.not. present(log)) return
    logger => log
    rc = c_set_log(c_funloc(hand_on), c_null_ptr)
  end subroutine

  subroutine hand_on(arg, level, sentence) bind(c)
    type(c_ptr), value :: arg, sentence
    integer(c_int), value :: level

    if (c_associated(arg)) return
    call logger(int(level), words_of(sentence))
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

  ! The label of the next epoch; '' for none.
  subroutine varve_label(session, label, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: label
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_label(session%handle, c_words(label)), stat, errmsg)
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

  ! How many items of a list this rank is to have after a restart, and how many there are in all. found = .false.: there is no epoch yet.
  subroutine varve_list_share(session, name, share, total, found, epoch, stat, errmsg)
    type(varve_session), intent(in) :: session
    character(*), intent(in) :: name
    integer(int64), intent(out), optional :: share, total
    logical, intent(out), optional :: found
    integer(int64), intent(in), optional :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: mine, all
    integer(c_int) :: rc

    mine = 0
    all = 0
    rc = c_list_share(session%handle, one_of(epoch), c_words(name), mine, all)
    if (present(share)) share = mine
    if (present(total)) total = all
    if (present(found)) found = rc > 0
    call conclude(rc, stat, errmsg)
  end subroutine

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

    rc = c_region(session%handle, one_of(epoch), c_words(name), from, c_sizeof(from))
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

    call conclude(c_stats(session%handle, stats, c_sizeof(stats)), stat, errmsg)
  end subroutine

  ! ---- readers: what varve_read.h has ----------------------------------------------------------------------------------------

  ! Without a lineage: to list the lineages only.
  subroutine varve_reader_open(reader, store, lineage, options, stat, errmsg)
    type(varve_reader), intent(inout) :: reader
    character(*), intent(in) :: store
    character(*), intent(in), optional :: lineage, options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: given
    character(kind=c_char), target :: name(256)
    type(c_ptr) :: handle, p
    integer(c_int) :: rc
    integer :: i

    given = ''
    if (present(options)) given = options
    handle = c_null_ptr
    p = c_null_ptr
    if (present(lineage)) then
      do i = 1, min(len_trim(lineage), size(name) - 1)
        name(i) = lineage(i:i)
      end do
      name(min(len_trim(lineage), size(name) - 1) + 1) = c_null_char
      p = c_loc(name)
    end if
    rc = c_reader_open(c_words(store), p, c_words(given), handle)
    if (rc >= 0) then
      rc = c_reader_close(reader%handle)
      reader%handle = handle
    end if
    call conclude(rc, stat, errmsg)
  end subroutine

  subroutine varve_reader_close(reader, stat, errmsg)
    type(varve_reader), intent(inout) :: reader
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: rc

    rc = c_reader_close(reader%handle)
    reader%handle = c_null_ptr
    call conclude(rc, stat, errmsg)
  end subroutine

  ! All names have the length of the longest.
  subroutine varve_reader_lineages(reader, names, stat, errmsg)
    type(varve_reader), intent(in) :: reader
    character(:), allocatable, intent(out) :: names(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr), pointer :: list(:)
    type(c_ptr) :: p
    integer(c_size_t) :: n
    integer(c_int) :: rc
    integer :: i, longest

    nullify (list)
    n = 0
    rc = c_reader_lineages(reader%handle, p, n)
    if (rc < 0) n = 0
    if (n > 0) call c_f_pointer(p, list, [n])
    longest = 1
    do i = 1, int(n)
      longest = max(longest, int(c_strlen(list(i))))
    end do
    allocate (character(longest) :: names(n))
    do i = 1, int(n)
      names(i) = words_of(list(i))
    end do
    call conclude(rc, stat, errmsg)
  end subroutine

  ! Oldest first.
  subroutine varve_reader_epochs(reader, epochs, stat, errmsg)
    type(varve_reader), intent(in) :: reader
    type(varve_stored_epoch), allocatable, intent(out) :: epochs(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr), pointer :: list(:), labels(:)
    type(c_stored_epoch), pointer :: e
    type(c_ptr) :: p
    integer(c_size_t) :: n
    integer(c_int) :: rc
    integer :: i, k

    nullify (list)
    n = 0
    rc = c_reader_epochs(reader%handle, p, n)
    if (rc < 0) n = 0
    if (n > 0) call c_f_pointer(p, list, [n])
    allocate (epochs(n))
    do i = 1, int(n)
      call c_f_pointer(list(i), e)
      epochs(i)%epoch = e%epoch
      epochs(i)%parent = e%parent
      epochs(i)%time_ns = e%time_ns
      epochs(i)%bytes_memory = e%bytes_memory
      epochs(i)%bytes_stored = e%bytes_stored
      epochs(i)%bytes_layer = e%bytes_layer
      epochs(i)%ranks = int(e%ranks)
      epochs(i)%complete = e%complete /= 0
      epochs(i)%problem = ''
      if (c_associated(e%problem)) epochs(i)%problem = words_of(e%problem)
      allocate (epochs(i)%labels(e%n_labels))
      nullify (labels)
      if (e%n_labels > 0) call c_f_pointer(e%label, labels, [e%n_labels])
      do k = 1, int(e%n_labels)
        epochs(i)%labels(k) = words_of(labels(k))
      end do
    end do
    call conclude(rc, stat, errmsg)
  end subroutine

  subroutine varve_reader_latest(reader, epoch, stat, errmsg)
    type(varve_reader), intent(in) :: reader
    integer(int64), intent(out) :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    epoch = 0
    call conclude(c_reader_latest(reader%handle, epoch), stat, errmsg)
  end subroutine

  ! The epoch with a label, or the newest for 'latest'.
  subroutine varve_reader_find(reader, label, epoch, stat, errmsg)
    type(varve_reader), intent(in) :: reader
    character(*), intent(in) :: label
    integer(int64), intent(out) :: epoch
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    epoch = 0
    call conclude(c_reader_find(reader%handle, c_words(label), epoch), stat, errmsg)
  end subroutine

  ! Of an epoch, or the newest; of a rank, or rank 0.
  subroutine varve_reader_regions(reader, regions, epoch, rank, stat, errmsg)
    type(varve_reader), intent(in) :: reader
    type(varve_stored_region), allocatable, intent(out) :: regions(:)
    integer(int64), intent(in), optional :: epoch
    integer, intent(in), optional :: rank
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr), pointer :: list(:)
    type(c_stored_region), pointer :: r
    type(c_ptr) :: p
    integer(c_size_t) :: n
    integer(c_int32_t) :: of
    integer(c_int) :: rc
    integer :: i, k
    type(c_field), pointer :: field(:)

    of = 0
    if (present(rank)) of = int(rank, c_int32_t)
    nullify (list)
    n = 0
    rc = c_reader_regions(reader%handle, one_of(epoch), of, p, n)
    if (rc < 0) n = 0
    if (n > 0) call c_f_pointer(p, list, [n])
    allocate (regions(n))
    do i = 1, int(n)
      call c_f_pointer(list(i), r)
      regions(i)%name = words_of(r%name)
      regions(i)%bytes = r%bytes
      regions(i)%type = int(r%type)
      regions(i)%element = int(r%element)
      regions(i)%shape = r%shape(r%ndim:1:-1)
      allocate (regions(i)%fields(r%n_fields))
      if (r%n_fields == 0) cycle
      call c_f_pointer(r%field, field, [r%n_fields])
      do k = 1, int(r%n_fields)
        regions(i)%fields(k)%name = words_of(field(k)%name)
        regions(i)%fields(k)%type = int(field(k)%type)
        regions(i)%fields(k)%offset = int(field(k)%offset, int64)
        regions(i)%fields(k)%bytes = int(field(k)%bytes, int64)
      end do
    end do
    call conclude(rc, stat, errmsg)
  end subroutine
end module
