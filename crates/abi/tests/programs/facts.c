/* Sizes, offsets and values that the standard ABI fixes, written down here and not generated. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define IS(condition) _Static_assert(condition, #condition)

IS(sizeof(MPI_Status) == 32 && _Alignof(MPI_Status) == sizeof(int));
IS(offsetof(MPI_Status, MPI_SOURCE) == 0);
IS(offsetof(MPI_Status, MPI_TAG) == 4);
IS(offsetof(MPI_Status, MPI_ERROR) == 8);
IS(offsetof(MPI_Status, MPI_internal) == 12);
IS(sizeof(((MPI_Status *)0)->MPI_internal) == 5 * sizeof(int));
IS(sizeof(MPI_Aint) == sizeof(intptr_t) && (MPI_Aint)-1 < 0);
IS(sizeof(MPI_Count) == 8 && (MPI_Count)-1 < 0);
IS(sizeof(MPI_Offset) == 8 && (MPI_Offset)-1 < 0);
IS(sizeof(MPI_Comm) == sizeof(void *) && sizeof(MPI_Request) == sizeof(void *) && sizeof(MPI_T_enum) == sizeof(void *));
IS(MPI_VERSION == 5 && MPI_SUBVERSION == 0 && MPI_ABI_VERSION == 1 && MPI_ABI_SUBVERSION == 0);
IS(MPI_F_STATUS_SIZE == 8 && MPI_F_SOURCE == 0 && MPI_F_TAG == 1 && MPI_F_ERROR == 2);
IS(MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -2 && MPI_PROC_NULL == -3 && MPI_ROOT == -4 && MPI_UNDEFINED == -32766);
IS(MPI_THREAD_SINGLE == 0 && MPI_THREAD_FUNNELED == 1024 && MPI_THREAD_SERIALIZED == 2048 && MPI_THREAD_MULTIPLE == 4096);
IS(MPI_SUCCESS == 0 && MPI_ERR_TRUNCATE == 15 && MPI_ERR_ABI == 62 && MPI_ERR_LASTCODE == 16383);
IS(MPI_BSEND_OVERHEAD == 512 && MPI_KEYVAL_INVALID == 0 && MPI_TAG_UB == 501);
IS(MPI_MAX_ERROR_STRING == 512 && MPI_MAX_OBJECT_NAME == 128 && MPI_MAX_PROCESSOR_NAME == 256);
IS(MPI_MAX_LIBRARY_VERSION_STRING == 8192 && MPI_MAX_INFO_KEY == 256 && MPI_MAX_INFO_VAL == 1024);

/* Handles and special addresses are pointers: compared by the program, since C calls no such cast constant. */
static const struct { const void *value; uintptr_t wanted; } handles[] = {
    {MPI_BOTTOM, 0}, {MPI_IN_PLACE, 1}, {MPI_BUFFER_AUTOMATIC, 2}, {MPI_STATUS_IGNORE, 0}, {MPI_STATUSES_IGNORE, 0},
    {MPI_UNWEIGHTED, 10}, {MPI_WEIGHTS_EMPTY, 11},
    {MPI_OP_NULL, 0x20}, {MPI_SUM, 0x21}, {MPI_NO_OP, 0x3d},
    {MPI_COMM_NULL, 0x100}, {MPI_COMM_WORLD, 0x101}, {MPI_COMM_SELF, 0x102},
    {MPI_GROUP_NULL, 0x108}, {MPI_GROUP_EMPTY, 0x109}, {MPI_WIN_NULL, 0x110}, {MPI_FILE_NULL, 0x118},
    {MPI_SESSION_NULL, 0x120}, {MPI_MESSAGE_NULL, 0x128}, {MPI_MESSAGE_NO_PROC, 0x129},
    {MPI_INFO_NULL, 0x130}, {MPI_INFO_ENV, 0x131},
    {MPI_ERRHANDLER_NULL, 0x140}, {MPI_ERRORS_ARE_FATAL, 0x141}, {MPI_ERRORS_ABORT, 0x142}, {MPI_ERRORS_RETURN, 0x143},
    {MPI_REQUEST_NULL, 0x180}, {MPI_DATATYPE_NULL, 0x200}, {MPI_AINT, 0x201}, {MPI_INT, 0x209}, {MPI_DOUBLE, 0x214},
    {MPI_CHAR, 0x243}, {MPI_BYTE, 0x247}, {MPI_INT64_T, 0x258}, {MPI_COMPLEX32, 0x2eb},
};

int main(void)
{
    if (MPI_T_ENUM_NULL != 0 || MPI_T_PVAR_SESSION_NULL != 0 || MPI_T_PVAR_ALL_HANDLES != (MPI_T_pvar_handle)1) return 200;
    if (MPI_COMM_NULL_COPY_FN != 0 || (uintptr_t)MPI_COMM_DUP_FN != 1 || MPI_COMM_NULL_DELETE_FN != 0) return 201;
    for (unsigned i = 0; i < sizeof handles / sizeof *handles; i++)
        if ((uintptr_t)handles[i].value != handles[i].wanted) return (int)i + 1;
    return 0;
}
