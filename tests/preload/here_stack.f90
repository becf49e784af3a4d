! Allocatable arrays of a subroutine, which only its stack points to at the checkpoint. Arguments and output as those of here_scratch.c.
module stack_state
  implicit none
  type :: world
    integer(8) :: step = 0, random = 88172645463325252_8
    real(8), allocatable :: field(:)
  end type
contains
  integer(8) function draw(w, n)
    type(world), intent(inout) :: w
    integer(8), intent(in) :: n
    w%random = ieor(w%random, ishft(w%random, 13))
    w%random = ieor(w%random, ishft(w%random, -7))
    w%random = ieor(w%random, ishft(w%random, 17))
    draw = modulo(w%random, n)
  end function

  subroutine advance(w)
    use varve_here
    type(world), intent(inout) :: w
    real(8), allocatable :: small(:), large(:, :)
    character(:), allocatable :: text
    integer(8) :: n
    n = 10 + draw(w, 500_8)
    allocate (small(n), source=1d0)
    n = 100 + draw(w, 100_8)
    allocate (large(n, 1000), source=2d0)
    n = 1000 + draw(w, 5000_8)
    text = repeat('x', int(n))
    if (allocated(w%field)) deallocate (w%field)
    n = 10000 + draw(w, 1000_8)
    allocate (w%field(n), source=1d0)
    w%step = w%step + 1
    call varve_checkpoint_here()
    if (sum(small) + sum(large) + len(text) < 0) stop 4
  end subroutine
end module

program here_stack
  use stack_state
  use varve_here
  implicit none
  type(world), pointer :: w
  integer :: last, unit, status
  character(200) :: line

  call get_command_argument(1, line)
  read (line, *) last
  allocate (w)
  call varve_checkpoint_here()
  do while (w%step < last)
    call advance(w)
  end do
  print '(i0,1x,i0)', w%step, w%random
  open (newunit=unit, file='/proc/self/status', action='read')
  do
    read (unit, '(a)', iostat=status) line
    if (status /= 0) exit
    if (line(1:6) == 'VmHWM:') print '(a)', trim(line)
  end do
end program
