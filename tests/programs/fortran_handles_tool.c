/* The C side of fortran_handles.F90: what it is given are Fortran's handles and statuses. */
#include <mpi.h>
#include <mpi_c2f.h>
#include <stdint.h>
#include <string.h>

int c_sum(int comm, int datatype, int op, int value);
int c_request(int request);
int c_tag(const int *status);
intptr_t c_attribute(int comm, int keyval, int set);
int c_new_type(void);
int c_booleans(void);

int c_sum(int comm, int datatype, int op, int value)
{
    int total = -1;
    MPI_Allreduce(&value, &total, 1, MPI_Type_f2c(datatype), MPI_Op_f2c(op), MPI_Comm_f2c(comm));
    return total;
}

int c_request(int request)
{
    MPI_Request handle = MPI_Request_fromint(request);
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
    return MPI_Request_toint(handle);
}

int c_tag(const int *status)
{
    MPI_Status converted;
    MPI_Status_f2c(status, &converted);
    return converted.MPI_TAG;
}

intptr_t c_attribute(int comm, int keyval, int set)
{
    static int place;
    void *value = NULL;
    int flag = 0;
    if (set) {
        MPI_Comm_set_attr(MPI_Comm_fromint(comm), keyval, &place);
        return (intptr_t)&place;
    }
    MPI_Comm_get_attr(MPI_Comm_fromint(comm), keyval, &value, &flag);
    return flag ? *(MPI_Aint *)value : -1;
}

int c_new_type(void)
{
    MPI_Datatype made;
    MPI_Type_contiguous(3, MPI_DOUBLE, &made);
    MPI_Type_commit(&made);
    return MPI_Type_toint(made);
}

int c_booleans(void)
{
    int yes = 0, no = 1, set = 0, flag = 0;
    char value[32] = "";
    MPI_Info info = MPI_INFO_NULL;
    int length = sizeof value;
    MPI_Abi_get_fortran_booleans(4, &yes, &no, &set);
    MPI_Abi_get_fortran_info(&info);
    if (info == MPI_INFO_NULL)
        return -1;
    MPI_Info_get_string(info, "mpi_integer_size", &length, value, &flag);
    MPI_Info_free(&info);
    return set && yes != no && flag && strcmp(value, "4") == 0;
}
