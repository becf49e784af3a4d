! What Fortran's library allocates for the program is on the heap, and what it knows of files is not. Prints "good".
program here_gifts
  implicit none
  real(8), allocatable :: a(:, :), b(:), c(:, :), d(:), e(:, :), f(:), g(:, :), h(:)
  character(:), allocatable :: text
  logical :: ok = .true.
  integer :: unit, i

  allocate (a(40, 40))
  a = 1.5d0
  b = reshape(a, [1600])
  c = matmul(a, a)
  d = pack(b, b > 1)
  e = spread(d, 1, 3)
  f = cshift(d, 2)
  g = transpose(a)
  h = sum(a, 1)
  text = repeat(trim('layer   '), 100)
  call expect('reshape', loc(b))
  call expect('matmul', loc(c))
  call expect('pack', loc(d))
  call expect('spread', loc(e))
  call expect('cshift', loc(f))
  call expect('transpose', loc(g))
  call expect('sum', loc(h))
  call expect('a string', loc(text))
  do i = 1, 20 ! files open and close as ever, and are written to
    open (newunit=unit, file='here_gifts.txt')
    write (unit, *) text, b(1:10)
    close (unit, status='delete')
  end do
  if (ok) print '(a)', 'good'
contains
  subroutine expect(name, place)
    character(*), intent(in) :: name
    integer(8), intent(in) :: place

    if (ishft(place, -40) >= 32 .and. ishft(place, -40) < 48) return
    print '(2a)', 'not on the heap: ', name
    ok = .false.
  end subroutine expect
end program here_gifts
