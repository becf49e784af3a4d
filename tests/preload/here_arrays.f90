! The same in Fortran: arrays that are allocated anew, lists by pointers, strings of any length. All of it hangs on one pointer.
module here_state
  implicit none
  type :: node
    integer(8) :: value = 0
    character(:), allocatable :: text
    type(node), pointer :: next => null()
  end type
  type :: world
    integer(8) :: step = 0, random = 88172645463325252_8, total = 0
    real(8), allocatable :: field(:, :), old(:, :)
    integer, allocatable :: history(:)
    type(node), pointer :: first => null()
    integer :: nodes = 0
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
    type(node), pointer :: p
    integer :: i, n
    do i = 1, 20
      allocate (p)
      p%value = draw(w, 1000_8)
      p%text = repeat(achar(97 + int(modulo(p%value, 26_8))), int(1 + draw(w, 300_8)))
      p%next => w%first
      w%first => p
      w%nodes = w%nodes + 1
    end do
    do while (w%nodes > 300)
      p => w%first%next%next
      w%total = w%total + p%value + len(p%text)
      w%first%next%next => p%next
      deallocate (p)
      w%nodes = w%nodes - 1
    end do
    w%history = [w%history, int(w%total)]
    n = 60 + int(modulo(w%step, 40_8))
    if (allocated(w%old)) deallocate (w%old)
    call move_alloc(w%field, w%old)
    allocate (w%field(n, n))
    do i = 1, n
      w%field(:, i) = w%old(1 + modulo(i, size(w%old, 1)), 1) * 0.5d0 + i + w%step
    end do
    w%step = w%step + 1
  end subroutine
end module

program here_arrays
  use here_state
  use varve_here
  implicit none
  type(world), pointer :: w
  type(node), pointer :: p
  integer :: steps, nap
  character(20) :: word
  integer(8) :: sum

  call get_command_argument(1, word)
  read (word, *) steps
  nap = 0
  if (command_argument_count() > 1) then
    call get_command_argument(2, word)
    read (word, *) nap
  end if
  allocate (w)
  allocate (w%field(50, 50), source=1d0)
  allocate (w%history(0))
  do while (w%step < steps)
    call advance(w)
    call varve_checkpoint_here()
    call rest(nap)
  end do
  sum = w%total
  p => w%first
  do while (associated(p))
    sum = modulo(sum * 31 + p%value + len(p%text), 1000000007_8)
    p => p%next
  end do
  print '(i0,1x,i0,1x,i0,1x,es23.16)', w%step, sum, size(w%history), w%field(7, 7) + w%old(3, 3)

contains
  subroutine rest(us)
    use, intrinsic :: iso_c_binding
    integer, intent(in) :: us
    interface
      integer(c_int) function usleep(us) bind(c)
        import :: c_int
        integer(c_int), value :: us
      end function
    end interface
    integer(c_int) :: ignored
    if (us > 0) ignored = usleep(int(us, c_int))
  end subroutine
end program
