! Readers, many arrays at once, a wait with a limit and the log, from Fortran.
module heard
  implicit none
  integer, volatile :: sentences = 0, last_level = -1
  character(500), volatile :: last = ''

contains

  subroutine hear(level, sentence)
    integer, intent(in) :: level
    character(*), intent(in) :: sentence

    sentences = sentences + 1
    last_level = level
    last = sentence
  end subroutine
end module

program test_reader
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use varve
  use heard
  implicit none
  real(real64), target :: t(5, 7), part(2, 3), column(5)
  integer, target :: step
  type, bind(c) :: particle
    real(c_double) :: x(3)
    integer(c_int) :: id
  end type
  type(particle), target :: particles(10)
  character(4), target :: word
  type(varve_session) :: v ! open to the end: readers are beside a writer
  integer :: failures = 0

  call write_epochs()
  call look()
  call read_parts()
  call wrong_use()
  call log()
  call varve_close(v)
  if (failures > 0) error stop 1

contains

  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what

    if (fine) return
    failures = failures + 1
    print '(2a)', 'failed: ', what
  end subroutine

  pure function value(i, j, epoch) result(x)
    integer, intent(in) :: i, j, epoch
    real(real64) :: x

    x = 1000*epoch + 10*i + j
  end function

  subroutine fill(epoch)
    integer, intent(in) :: epoch
    integer :: i, j

    do j = 1, 7
      do i = 1, 5
        t(i, j) = value(i, j, epoch)
      end do
    end do
    step = epoch
  end subroutine

  subroutine write_epochs()
    type(varve_array) :: arrays(3)
    type(varve_field) :: fields(2)
    integer :: epoch, stat
    character(300) :: words

    call varve_open(v, 'mem:fortran', 'l', 'log=error')
    arrays(1) = varve_array('t', c_loc(t), varve_f64, [5_int64, 7_int64])
    arrays(2) = varve_array('step', c_loc(step), varve_i32, [1_int64])
    arrays(3) = varve_array('word', c_loc(word), varve_bytes, [4_int64])
    call varve_protect_arrays(v, arrays)
    arrays(2)%name = 'new'
    arrays(3)%shape = [2_int64**36] ! memory that is not there
    call varve_protect_arrays(v, arrays, stat, words)
    call check(stat == varve_einval .and. index(words, 'not mapped') > 0, 'unmapped memory')
    fields(1) = varve_field('id', varve_i32, 24_int64, 4_int64)
    fields(2) = varve_field('x', varve_f64, 0_int64, 24_int64)
    particles%id = [(epoch, epoch = 1, 10)]
    call varve_protect_records(v, 'particles', c_loc(particles), 10_int64, storage_size(particles)/8_int64, fields)
    fields(1)%offset = 20
    call varve_protect_records(v, 'bad', c_loc(particles), 10_int64, storage_size(particles)/8_int64, fields, stat, words)
    call check(stat == varve_einval .and. index(words, 'overlap') > 0, 'fields that overlap')
    word = 'abcd'
    do epoch = 1, 3
      call fill(epoch)
      if (epoch == 2) call varve_label(v, 'two')
      call varve_checkpoint(v)
      call check(varve_wait_for(v, varve_epoch(v), 60.0_real64), 'wait_for')
    end do
  end subroutine

  subroutine look()
    type(varve_reader) :: r
    character(:), allocatable, save :: names(:) ! gfortran warns of a length that is not initialized otherwise
    type(varve_stored_epoch), allocatable :: epochs(:)
    type(varve_stored_region), allocatable :: regions(:)
    character(300) :: words
    integer(int64) :: epoch
    integer :: stat

    call varve_reader_open(r, 'mem:fortran')
    call varve_reader_lineages(r, names)
    call check(size(names) == 1, 'one lineage')
    call check(names(1) == 'l', 'its name')
    call varve_reader_close(r)
    call varve_reader_open(r, 'mem:fortran', 'l', 'log=error')
    call varve_reader_latest(r, epoch)
    call check(epoch == 3, 'the newest')
    call varve_reader_epochs(r, epochs)
    call check(size(epochs) == 3, 'three epochs')
    call check(all(epochs%epoch == [1_int64, 2_int64, 3_int64]) .and. all(epochs%complete) .and. all(epochs%ranks == 1), 'epochs')
    call check(epochs(2)%problem == '' .and. epochs(2)%bytes_memory == 5*7*8 + 8 + 320 .and. epochs(2)%parent == 1, 'an epoch')
    call check(size(epochs(1)%labels) == 0 .and. size(epochs(2)%labels) == 1, 'labels')
    call check(epochs(2)%labels(1) == 'two', 'a label')
    call varve_reader_find(r, 'two', epoch)
    call check(epoch == 2, 'by label')
    call varve_reader_find(r, 'latest', epoch)
    call check(epoch == 3, 'the newest by name')
    call varve_reader_find(r, 'tow', epoch, stat, words)
    call check(stat == varve_enoent .and. index(words, "did you mean 'two'?") > 0, 'no such label')
    call varve_reader_regions(r, regions, epoch=2_int64)
    call check(size(regions) == 4, 'four regions')
    call check(regions(4)%type == varve_record .and. size(regions(4)%fields) == 2, 'a record')
    call check(regions(4)%fields(1)%name == 'x' .and. regions(4)%fields(2)%offset == 24, 'its fields')
    call check(regions(4)%fields(2)%type == varve_i32 .and. size(regions(1)%fields) == 0, 'types of fields')
    call check(regions(1)%name == 't' .and. regions(1)%type == varve_f64 .and. regions(1)%element == 8, 'a region')
    call check(all(regions(1)%shape == [5_int64, 7_int64]) .and. regions(1)%bytes == 280, 'its shape')
    call check(regions(3)%type == varve_bytes .and. size(regions(3)%shape) == 0, 'bytes')
    call varve_reader_close(r)
  end subroutine

  subroutine read_parts()
    type(varve_reader) :: r
    character(2) :: two
    integer :: i, j, s

    call varve_reader_open(r, 'mem:fortran', 'l', 'log=error')
    call varve_reader_read_part(r, 't', part, [3_int64, 2_int64], epoch=2_int64)
    call check(all(part == reshape([((value(i, j, 2), i=3, 4), j=2, 4)], [2, 3])), 'a part')
    t = 0
    call varve_reader_read_part(r, 't', t, epoch=1_int64)
    call check(all(t == reshape([((value(i, j, 1), i=1, 5), j=1, 7)], [5, 7])), 'all of it')
    call varve_reader_read(r, 't', column, start=5*8*6_int64 + 1)
    call check(all(column == [(value(i, 7, 3), i=1, 5)]), 'bytes')
    call varve_reader_read(r, 'step', s, epoch=2_int64, rank=0)
    call check(s == 2, 'a scalar')
    call varve_reader_read(r, 'word', two, start=2_int64)
    call check(two == 'bc', 'characters')
    call varve_reader_close(r)
  end subroutine

  subroutine wrong_use()
    type(varve_reader) :: r
    real :: single(5, 7)
    integer :: stat
    integer(int64) :: epoch
    character(300) :: words

    call varve_reader_latest(r, epoch, stat)
    call check(stat == varve_einval, 'not open')
    call varve_reader_open(r, 'mem:fortran', 'nothing', stat=stat, errmsg=words)
    call check(stat == varve_enoent .and. index(words, 'nothing') > 0, 'no such lineage')
    call varve_reader_open(r, 'mem:fortran', 'l', 'log=error')
    call varve_reader_read_part(r, 't', single, stat=stat, errmsg=words)
    call check(stat == varve_emismatch .and. index(words, 'another type') > 0, 'another type')
    call varve_reader_read_part(r, 't', column, stat=stat, errmsg=words)
    call check(stat == varve_einval .and. index(words, 'dimensions') > 0, 'dimensions')
    call varve_reader_read_part(r, 't', part, [5_int64, 2_int64], stat=stat, errmsg=words)
    call check(stat == varve_einval .and. index(words, 'elements from 4') > 0, 'outside')
    call varve_reader_read_part(r, 't', part, [0_int64, 2_int64], stat=stat, errmsg=words)
    call check(stat == varve_einval .and. index(words, 'from 1') > 0, 'start 0')
    call varve_reader_read(r, 'u', column, stat=stat, errmsg=words)
    call check(stat == varve_enoent .and. index(words, "it holds 't'") > 0, 'no such region')
    call varve_reader_read(r, 't', column, epoch=9_int64, stat=stat)
    call check(stat == varve_enoent, 'no such epoch')
    call varve_reader_close(r)
  end subroutine

  subroutine log()
    type(varve_session) :: other
    integer :: unused

    call varve_open(other, 'mem:fortran', 'log', 'log=warn') ! from now on
    call varve_close(other)
    call varve_set_log(hear)
    unused = setenv('VARVE_CODEX'//c_null_char, 'lz4'//c_null_char, 1)
    call varve_open(other, 'mem:fortran', 'log', 'log=warn')
    call varve_close(other)
    call check(sentences == 1 .and. last_level == varve_log_warn .and. index(last, 'VARVE_CODEX') == 1, 'a sentence')
    call varve_set_log()
  end subroutine

  integer function setenv(name, text, replace)
    character(*), intent(in) :: name, text
    integer, intent(in) :: replace
    interface
      integer(c_int) function c_setenv(name, text, replace) bind(c, name='setenv')
        import :: c_int, c_char
        character(kind=c_char), intent(in) :: name(*), text(*)
        integer(c_int), value :: replace
      end function
    end interface

    setenv = int(c_setenv(name, text, int(replace, c_int)))
  end function
end program
