! call varve_checkpoint_here(): a checkpoint of a program that declares nothing. Does nothing unless libvarve_preload.so is there.
module varve_here
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  private
  public :: varve_checkpoint_here

  interface
    integer(c_int) function c_here() bind(c, name='varve_fortran_here')
      import :: c_int
    end function
    subroutine c_say() bind(c, name='varve_fortran_here_say')
    end subroutine
  end interface

contains

  ! restored: the program has just come back to life, with the memory it had in this call. Without stat a failure ends the program.
  subroutine varve_checkpoint_here(restored, stat)
    logical, intent(out), optional :: restored
    integer, intent(out), optional :: stat
    integer(c_int) :: rc

    rc = c_here()
    if (present(restored)) restored = rc > 0
    if (present(stat)) stat = min(int(rc), 0)
    if (rc >= 0 .or. present(stat)) return
    call c_say()
    error stop 'varve_checkpoint_here failed'
  end subroutine
end module
