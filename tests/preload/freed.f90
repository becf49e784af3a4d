! The same in Fortran.
program freed
  use varve
  implicit none
  integer, parameter :: cells = 262144
  double precision, allocatable :: h(:), g(:)
  type(varve_session) :: v
  character(4096) :: store
  integer :: step, i

  call get_command_argument(1, store)
  allocate (h(cells), g(cells))
  call varve_open(v, trim(store), 'heatdis')
  call varve_protect(v, 'h', h)
  call varve_protect(v, 'g', g)
  do step = 1, 3
    do i = 1, cells
      h(i) = mod(int(i, 8)*7919, 10007_8) + step
      g(i) = h(i)*i + step
    end do
    call varve_checkpoint(v)
  end do
  deallocate (h, g)
  call varve_close(v)
end program
