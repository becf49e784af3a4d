! Automatic and allocatable arrays of all sizes, and fields that are allocated anew. Arguments and output as those of here_scratch.c.
module scratch_state
  implicit none
  type :: row
    real(8), allocatable :: x(:)
  end type
  type :: world
    integer(8) :: step = 0, random = 88172645463325252_8
    real(8) :: total = 0
    type(row) :: rows(2000)
    real(8), allocatable :: field(:, :)
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
    type(world), intent(inout) :: w
    real(8), allocatable :: scratch(:), other(:), turned(:, :)
    integer :: i, k, n
    do i = 1, 400
      k = int(1 + draw(w, 2000_8))
      if (allocated(w%rows(k)%x)) deallocate (w%rows(k)%x)
      n = int(1 + draw(w, 400_8))
      allocate (w%rows(k)%x(n), source=1d0)
    end do
    do i = 1, 16
      n = 2**i + int(draw(w, 2_8**i))
      allocate (scratch(n), source=real(i, 8))
      other = scratch(1:n:2) * 2
      other = [other, scratch]
      w%total = modulo(w%total + sum(other), 1d6)
      deallocate (scratch)
    end do
    if (modulo(w%step, 8_8) == 0) then
      if (allocated(w%field)) deallocate (w%field)
      n = int(300 + draw(w, 60_8))
      allocate (w%field(n, 300), source=1d0)
    end if
    turned = transpose(w%field)
    call move_alloc(turned, w%field)
    w%total = modulo(w%total + sum(w%field), 1d6)
    w%step = w%step + 1
  end subroutine
end module

program here_scratch
  use scratch_state
  use varve_here
  implicit none
  type(world), pointer :: w
  integer :: last, unit, status
  character(200) :: line

  call get_command_argument(1, line)
  read (line, *) last
  allocate (w)
  do while (w%step < last)
    call advance(w)
    call varve_checkpoint_here()
  end do
  print '(i0,1x,es23.16)', w%step, w%total
  open (newunit=unit, file='/proc/self/status', action='read')
  do
    read (unit, '(a)', iostat=status) line
    if (status /= 0) exit
    if (line(1:6) == 'VmHWM:') print '(a)', trim(line)
  end do
end program
