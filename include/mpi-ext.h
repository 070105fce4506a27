/* mpi-ext.h: what Parnass offers beyond MPI 5.0: fault tolerance by User-Level Failure Mitigation, under the names that Open MPI and
 * MPICH have for it. The document is docs/fault-tolerance.md. */
#ifndef MPI_EXT_H_INCLUDED
#define MPI_EXT_H_INCLUDED

#include "mpi.h"

/* For programs that ask for this extension of Open MPI's by this name. */
#define OMPI_HAVE_MPI_EXT_FTMPI 1

#if defined(__cplusplus)
extern "C" {
#endif

/* Error classes: below MPI_ERR_LASTCODE and far above those of the standard, so that they are never those of a program. */
enum {
    MPIX_ERR_PROC_FAILED         = 0x3f01, /* a process that the operation needs is dead */
    MPIX_ERR_PROC_FAILED_PENDING = 0x3f02, /* one of those from whom MPI_ANY_SOURCE may receive is dead; the receive goes on */
    MPIX_ERR_REVOKED             = 0x3f03  /* the communicator was revoked */
};

int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
/* The earlier form of ack_failed: all that are known at the call, and who they were. */
int MPIX_Comm_failure_ack(MPI_Comm comm);
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);

int PMPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int PMPIX_Comm_agree(MPI_Comm comm, int *flag);
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int PMPIX_Comm_failure_ack(MPI_Comm comm);
int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);

#if defined(__cplusplus)
}
#endif

#endif
