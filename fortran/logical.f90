! logical.f90: what only the compiler knows: the values of LOGICAL, and which types there are.

subroutine parnass_f_logical_read(from, to)
  implicit none
  logical, intent(in) :: from
  integer, intent(out) :: to
  to = merge(1, 0, from)
end subroutine

subroutine parnass_f_logical_write(from, to)
  implicit none
  integer, intent(in) :: from
  logical, intent(out) :: to
  to = from /= 0
end subroutine

! sizes: of LOGICAL, INTEGER, REAL, DOUBLE PRECISION, in bytes. supported: in the order of support.c.
subroutine parnass_f_describe_types(true_value, false_value, sizes, supported)
  use, intrinsic :: iso_fortran_env, only: logical_kinds, integer_kinds, real_kinds
  implicit none
  logical, intent(out) :: true_value, false_value
  integer, intent(out) :: sizes(4), supported(19)
  integer, parameter :: integers(5) = [1, 2, 4, 8, 16], reals(4) = [2, 4, 8, 16]
  integer :: i

  true_value = .true.
  false_value = .false.
  sizes = [storage_size(.true.), storage_size(0), storage_size(0.0), storage_size(0.0d0)] / 8
  supported(1:5) = [(merge(1, 0, any(logical_kinds == integers(i))), i = 1, 5)]
  supported(6:10) = [(merge(1, 0, any(integer_kinds == integers(i))), i = 1, 5)]
  supported(11:14) = [(merge(1, 0, any(real_kinds == reals(i))), i = 1, 4)]
  supported(15:18) = supported(11:14)
  supported(19) = 1
end subroutine
