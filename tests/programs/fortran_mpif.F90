! The program of fortran_mpi.F90 with mpif.h in place of the module.
#define WITH_MPIF
#include "fortran_mpi.F90"
