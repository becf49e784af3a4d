! varve for MPI programs: all of module varve, and a session over a communicator, whichever of MPI's modules it comes from.
! Close the session before MPI_Finalize.
module varve_mpi
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char, c_null_ptr, c_ptr
  use mpi_f08, only: MPI_Comm
  use varve
  implicit none
  private :: c_char, c_int, c_null_char, c_null_ptr, c_ptr, MPI_Comm, c_open_mpi, open_integer, open_f08

  interface
    function c_open_mpi(comm, store, lineage, options, handle) result(rc) bind(c, name='varve_fortran_open_mpi')
      import :: c_ptr, c_int, c_char
      integer(c_int), value :: comm ! an MPI_Fint, which is a default integer
      character(kind=c_char), intent(in) :: store(*), lineage(*), options(*)
      type(c_ptr), intent(out) :: handle
      integer(c_int) :: rc
    end function
  end interface

  ! As varve_open, by all ranks of the communicator together.
  interface varve_open_mpi
    module procedure open_integer, open_f08
  end interface

contains

  subroutine open_integer(session, comm, store, lineage, options, stat, errmsg)
    type(varve_session), intent(inout) :: session
    integer, intent(in) :: comm
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
    rc = c_open_mpi(comm, trim(store)//c_null_char, trim(lineage)//c_null_char, trim(given)//c_null_char, handle)
    call varve_adopt(session, handle, int(rc), stat, errmsg)
  end subroutine

  subroutine open_f08(session, comm, store, lineage, options, stat, errmsg)
    type(varve_session), intent(inout) :: session
    type(MPI_Comm), intent(in) :: comm
    character(*), intent(in) :: store, lineage
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call open_integer(session, comm%MPI_VAL, store, lineage, options, stat, errmsg)
  end subroutine
end module
