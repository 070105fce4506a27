! sizes.f90: does not compile where a default INTEGER or LOGICAL is not 4 bytes long.
module parnass_sizes
  implicit none
  integer, parameter :: integer_is_4_bytes = 1 / merge(1, 0, storage_size(0) == 32)
  integer, parameter :: logical_is_4_bytes = 1 / merge(1, 0, storage_size(.true.) == 32)
end module
