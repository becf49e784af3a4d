! The smallest user of the installed Fortran module: prints the version.
program consumer
  use varve
  implicit none
  type(varve_session) :: v
  integer, target :: x = 1

  call varve_open(v, 'mem:consumer', 'a')
  call varve_protect(v, 'x', x)
  call varve_checkpoint(v)
  call varve_close(v)
  print '(a)', varve_version()
end program
