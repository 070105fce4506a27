/* mpi_c2f.h: the names by which programs converted handles to Fortran before MPI 5.0. mpi.h includes it.
 *
 * They are not in the standard ABI: MPI 5.0 has MPI_Comm_toint and its siblings (section 20.3.4), to which these forward. They are
 * functions of the program itself, so that it runs on every library with the ABI.
 */
#ifndef PARNASS_MPI_C2F_H
#define PARNASS_MPI_C2F_H

#include "mpi.h"

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define PARNASS_INLINE static inline
#else
#define PARNASS_INLINE static __inline__
#endif

typedef int MPI_Fint;

#define MPI_F_STATUS_IGNORE ((MPI_Fint *) 0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *) 0)

PARNASS_INLINE MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return MPI_Comm_toint(comm); }
PARNASS_INLINE MPI_Comm MPI_Comm_f2c(MPI_Fint comm) { return MPI_Comm_fromint(comm); }
PARNASS_INLINE MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler errhandler) { return MPI_Errhandler_toint(errhandler); }
PARNASS_INLINE MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint errhandler) { return MPI_Errhandler_fromint(errhandler); }
PARNASS_INLINE MPI_Fint MPI_File_c2f(MPI_File file) { return MPI_File_toint(file); }
PARNASS_INLINE MPI_File MPI_File_f2c(MPI_Fint file) { return MPI_File_fromint(file); }
PARNASS_INLINE MPI_Fint MPI_Group_c2f(MPI_Group group) { return MPI_Group_toint(group); }
PARNASS_INLINE MPI_Group MPI_Group_f2c(MPI_Fint group) { return MPI_Group_fromint(group); }
PARNASS_INLINE MPI_Fint MPI_Info_c2f(MPI_Info info) { return MPI_Info_toint(info); }
PARNASS_INLINE MPI_Info MPI_Info_f2c(MPI_Fint info) { return MPI_Info_fromint(info); }
PARNASS_INLINE MPI_Fint MPI_Message_c2f(MPI_Message message) { return MPI_Message_toint(message); }
PARNASS_INLINE MPI_Message MPI_Message_f2c(MPI_Fint message) { return MPI_Message_fromint(message); }
PARNASS_INLINE MPI_Fint MPI_Op_c2f(MPI_Op op) { return MPI_Op_toint(op); }
PARNASS_INLINE MPI_Op MPI_Op_f2c(MPI_Fint op) { return MPI_Op_fromint(op); }
PARNASS_INLINE MPI_Fint MPI_Request_c2f(MPI_Request request) { return MPI_Request_toint(request); }
PARNASS_INLINE MPI_Request MPI_Request_f2c(MPI_Fint request) { return MPI_Request_fromint(request); }
PARNASS_INLINE MPI_Fint MPI_Session_c2f(MPI_Session session) { return MPI_Session_toint(session); }
PARNASS_INLINE MPI_Session MPI_Session_f2c(MPI_Fint session) { return MPI_Session_fromint(session); }
PARNASS_INLINE MPI_Fint MPI_Type_c2f(MPI_Datatype datatype) { return MPI_Type_toint(datatype); }
PARNASS_INLINE MPI_Datatype MPI_Type_f2c(MPI_Fint datatype) { return MPI_Type_fromint(datatype); }
PARNASS_INLINE MPI_Fint MPI_Win_c2f(MPI_Win win) { return MPI_Win_toint(win); }
PARNASS_INLINE MPI_Win MPI_Win_f2c(MPI_Fint win) { return MPI_Win_fromint(win); }

/* A Fortran status is 8 integers, in the order of the C structure. */
PARNASS_INLINE int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    *(MPI_Status *)(void *)f_status = *c_status;
    return MPI_SUCCESS;
}
PARNASS_INLINE int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    *c_status = *(const MPI_Status *)(const void *)f_status;
    return MPI_SUCCESS;
}

/* Nobody can step between a program and these: their profiling names are the same. */
#define PMPI_Comm_c2f MPI_Comm_c2f
#define PMPI_Comm_f2c MPI_Comm_f2c
#define PMPI_Errhandler_c2f MPI_Errhandler_c2f
#define PMPI_Errhandler_f2c MPI_Errhandler_f2c
#define PMPI_File_c2f MPI_File_c2f
#define PMPI_File_f2c MPI_File_f2c
#define PMPI_Group_c2f MPI_Group_c2f
#define PMPI_Group_f2c MPI_Group_f2c
#define PMPI_Info_c2f MPI_Info_c2f
#define PMPI_Info_f2c MPI_Info_f2c
#define PMPI_Message_c2f MPI_Message_c2f
#define PMPI_Message_f2c MPI_Message_f2c
#define PMPI_Op_c2f MPI_Op_c2f
#define PMPI_Op_f2c MPI_Op_f2c
#define PMPI_Request_c2f MPI_Request_c2f
#define PMPI_Request_f2c MPI_Request_f2c
#define PMPI_Session_c2f MPI_Session_c2f
#define PMPI_Session_f2c MPI_Session_f2c
#define PMPI_Type_c2f MPI_Type_c2f
#define PMPI_Type_f2c MPI_Type_f2c
#define PMPI_Win_c2f MPI_Win_c2f
#define PMPI_Win_f2c MPI_Win_f2c
#define PMPI_Status_c2f MPI_Status_c2f
#define PMPI_Status_f2c MPI_Status_f2c

#endif
