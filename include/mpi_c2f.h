/* mpi_c2f.h: the names by which programs converted handles to Fortran before MPI 5.0.
 *
 * They are not in the standard ABI: MPI 5.0 has MPI_Comm_toint and its siblings (section 20.3.4), to which these forward.
 * For programs that still want the old names: include this after mpi.h, or compile with -include mpi_c2f.h.
 */
#ifndef PARNASS_MPI_C2F_H
#define PARNASS_MPI_C2F_H

#include <mpi.h>
#include <string.h>

typedef int MPI_Fint;

#define MPI_F_STATUS_IGNORE ((MPI_Fint *) 0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *) 0)

static inline MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return MPI_Comm_toint(comm); }
static inline MPI_Comm MPI_Comm_f2c(MPI_Fint comm) { return MPI_Comm_fromint(comm); }
static inline MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler errhandler) { return MPI_Errhandler_toint(errhandler); }
static inline MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint errhandler) { return MPI_Errhandler_fromint(errhandler); }
static inline MPI_Fint MPI_File_c2f(MPI_File file) { return MPI_File_toint(file); }
static inline MPI_File MPI_File_f2c(MPI_Fint file) { return MPI_File_fromint(file); }
static inline MPI_Fint MPI_Group_c2f(MPI_Group group) { return MPI_Group_toint(group); }
static inline MPI_Group MPI_Group_f2c(MPI_Fint group) { return MPI_Group_fromint(group); }
static inline MPI_Fint MPI_Info_c2f(MPI_Info info) { return MPI_Info_toint(info); }
static inline MPI_Info MPI_Info_f2c(MPI_Fint info) { return MPI_Info_fromint(info); }
static inline MPI_Fint MPI_Message_c2f(MPI_Message message) { return MPI_Message_toint(message); }
static inline MPI_Message MPI_Message_f2c(MPI_Fint message) { return MPI_Message_fromint(message); }
static inline MPI_Fint MPI_Op_c2f(MPI_Op op) { return MPI_Op_toint(op); }
static inline MPI_Op MPI_Op_f2c(MPI_Fint op) { return MPI_Op_fromint(op); }
static inline MPI_Fint MPI_Request_c2f(MPI_Request request) { return MPI_Request_toint(request); }
static inline MPI_Request MPI_Request_f2c(MPI_Fint request) { return MPI_Request_fromint(request); }
static inline MPI_Fint MPI_Session_c2f(MPI_Session session) { return MPI_Session_toint(session); }
static inline MPI_Session MPI_Session_f2c(MPI_Fint session) { return MPI_Session_fromint(session); }
static inline MPI_Fint MPI_Type_c2f(MPI_Datatype datatype) { return MPI_Type_toint(datatype); }
static inline MPI_Datatype MPI_Type_f2c(MPI_Fint datatype) { return MPI_Type_fromint(datatype); }
static inline MPI_Fint MPI_Win_c2f(MPI_Win win) { return MPI_Win_toint(win); }
static inline MPI_Win MPI_Win_f2c(MPI_Fint win) { return MPI_Win_fromint(win); }

/* A Fortran status is 8 integers, in the order of the C structure. */
static inline int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    memcpy(f_status, c_status, sizeof *c_status);
    return MPI_SUCCESS;
}
static inline int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    memcpy(c_status, f_status, sizeof *c_status);
    return MPI_SUCCESS;
}

#endif
