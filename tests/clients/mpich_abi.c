// What only MPICH's ABI has: the layout of a status, handles that are integers, names beyond the standard, and functions of
// the program that get such handles. Compiled with MPICH's mpicc; every call is checked, on any number of ranks.

#include <mpi.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../programs/check.h"

static int destroyed;
static void destroy(void *state) { destroyed += *(int *)state; }

static MPI_Datatype seen_type;
static int seen_count;

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    seen_type = *type;
    seen_count = *count;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}
static void add_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
    seen_type = *type;
    for (MPI_Count i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}
static void add_extra(void *in, void *inout, MPI_Count count, MPI_Datatype type, void *state) {
    seen_type = type;
    for (MPI_Count i = 0; i < count; i++) ((int *)inout)[i] += ((int *)in)[i] * *(int *)state;
}

static void operations(void) {
    MPI_Op op = 0;
    int mine[2] = {check_rank, 1}, all[2];
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(mine, all, 2, MPI_INT, op, MPI_COMM_WORLD);
    CHECK_EQUAL(all[0], check_size * (check_size - 1) / 2);
    CHECK_EQUAL(all[1], check_size);
    int one = 1, two = 2;
    MPI_Reduce_local(&one, &two, 1, MPI_INT, op);
    CHECK_EQUAL(two, 3);
    CHECK_EQUAL(seen_type, MPI_INT);
    CHECK_EQUAL(seen_count, 1);
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int from[2] = {1, 2}, to[2] = {3, 4};
    MPI_Reduce_local(from, to, 1, pair, op);
    CHECK_EQUAL(seen_type, pair);
    MPI_Type_free(&pair);
    CHECK_EQUAL(pair, MPI_DATATYPE_NULL);
    MPI_Op_free(&op);
    CHECK_EQUAL(op, MPI_OP_NULL);

    MPI_Op_create_c(add_large, 1, &op);
    MPI_Reduce_local(&one, &two, 1, MPI_INT, op);
    CHECK_EQUAL(two, 4);
    MPI_Op_free(&op);

    int factor = 10;
    seen_type = 0;
    destroyed = 0;
    MPIX_Op_create_x(add_extra, destroy, 1, &factor, &op);
    MPI_Reduce_local(&one, &two, 1, MPI_INT, op);
    CHECK_EQUAL(two, 14);
    CHECK_EQUAL(seen_type, MPI_INT);
    MPI_Op_free(&op);
    CHECK_EQUAL(destroyed, 10);
}

static void *handler_object;
static int handler_code, handler_comm;
static void comm_handler(MPI_Comm *comm, int *code, ...) { handler_comm = *comm, handler_code = *code; }
static void win_handler(MPI_Win *win, int *code, ...) { handler_comm = *win, handler_code = *code; }
static void file_handler(MPI_File *file, int *code, ...) { handler_object = *file, handler_code = *code; }
static void session_handler(MPI_Session *session, int *code, ...) { handler_comm = *session, handler_code = *code; }
static void comm_handler_extra(MPI_Comm comm, int code, void *state) { handler_comm = comm, handler_code = code + *(int *)state; }

static void error_handlers(void) {
    MPI_Errhandler handler = 0, now;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(comm_handler, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    CHECK_EQUAL(handler, MPI_ERRHANDLER_NULL);
    int code = MPI_Send(&code, 1, MPI_INT, check_size, 0, comm);
    CHECK_EQUAL(handler_comm, comm);
    CHECK_EQUAL(handler_code, MPI_ERR_RANK);
    CHECK_EQUAL(code, MPI_ERR_RANK);
    MPI_Comm_call_errhandler(comm, MPI_ERR_TRUNCATE);
    CHECK_EQUAL(handler_code, MPI_ERR_TRUNCATE);
    MPI_Comm_get_errhandler(comm, &now);
    CHECK(now != MPI_ERRORS_ARE_FATAL && now != 0, "handler %x", now);
    MPI_Errhandler_free(&now);

    int more = 1000;
    destroyed = 0;
    MPIX_Comm_create_errhandler_x(comm_handler_extra, destroy, &more, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_call_errhandler(comm, MPI_ERR_TAG);
    CHECK_EQUAL(handler_code, MPI_ERR_TAG + 1000);
    CHECK_EQUAL(destroyed, 0);
    MPI_Comm_free(&comm);
    CHECK_EQUAL(comm, MPI_COMM_NULL);
    CHECK_EQUAL(destroyed, 1000);

    MPI_Win win;
    int memory = 0;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create_errhandler(win_handler, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC);
    CHECK_EQUAL(handler_comm, win);
    CHECK_EQUAL(handler_code, MPI_ERR_RMA_SYNC);
    int *flavor, *model, flag;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_CREATE, "flavor %d", *flavor);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
    CHECK(flag && *model == MPI_WIN_UNIFIED, "model %d", *model);
    MPI_Win_free(&win);
    CHECK_EQUAL(win, MPI_WIN_NULL);

    MPI_File_create_errhandler(file_handler, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_File file;
    code = MPI_File_open(MPI_COMM_SELF, "no/such/folder/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK_EQUAL(code, MPI_ERR_NO_SUCH_FILE);
    CHECK_EQUAL(handler_code, MPI_ERR_NO_SUCH_FILE);
    CHECK(handler_object == MPI_FILE_NULL, "file %p", handler_object);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);

    MPI_Session session;
    MPI_Session_create_errhandler(session_handler, &handler);
    MPI_Session_init(MPI_INFO_NULL, handler, &session);
    MPI_Session_call_errhandler(session, MPI_ERR_ARG);
    CHECK_EQUAL(handler_comm, session);
    CHECK_EQUAL(handler_code, MPI_ERR_ARG);
    MPI_Session_finalize(&session);
    CHECK_EQUAL(session, MPI_SESSION_NULL);
    MPI_Errhandler_free(&handler);
}

static int copies, deletes;
static int copy_comm(MPI_Comm comm, int key, void *state, void *value, void *copied, int *flag) {
    copies++;
    CHECK(comm == MPI_COMM_SELF && key > 0 && state == &copies, "comm %x key %d", comm, key);
    *(void **)copied = (char *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}
static int delete_comm(MPI_Comm comm, int key, void *value, void *state) {
    (void)key, (void)value;
    deletes++;
    CHECK(comm != MPI_COMM_NULL && state == &copies, "comm %x", comm);
    return deletes == 2 ? 12345 : MPI_SUCCESS;
}

static void attributes(void) {
    int key, plain, flag;
    char place[4];
    void *value;
    MPI_Comm_create_keyval(copy_comm, delete_comm, &key, &copies);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, place);
    MPI_Comm_set_attr(MPI_COMM_SELF, plain, place + 2);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(flag && value == place + 1 && copies == 1, "copies %d", copies);
    MPI_Comm_get_attr(comm, plain, &value, &flag);
    CHECK(flag && value == place + 2, "value %p", value);
    MPI_Comm_free(&comm);
    CHECK_EQUAL(deletes, 1);
    // The code of a callback comes out as it was.
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_SELF, key), 12345);
    CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_SUCCESS);
    MPI_Comm_delete_attr(MPI_COMM_SELF, plain);
    MPI_Comm_free_keyval(&key);
    CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
    MPI_Comm_free_keyval(&plain);
    int *number;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &number, &flag);
    CHECK(!flag || *number == MPI_ANY_SOURCE || *number >= 0, "MPI_IO %d", *number);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &number, &flag);
    CHECK(flag && *number >= 32767, "MPI_TAG_UB %d", *number);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &number, &flag);
    CHECK(flag && *number >= MPI_ERR_LASTCODE, "MPI_LASTUSEDCODE %x", *number);
}

static void errors(void) {
    int class, code, back;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    CHECK(class > MPI_ERR_LASTCODE, "class %x", class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "of our own");
    MPI_Error_class(code, &back);
    CHECK_EQUAL(back, class);
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(strcmp(text, "of our own") == 0, "text %s", text);
    MPI_Error_class(MPI_ERR_NO_MEM, &back);
    CHECK_EQUAL(back, MPI_ERR_NO_MEM);

    // Garbage in each class, and the standard's own numbers, which mean nothing here.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int garbage[] = {0, 1, 0x101, 0x209, 4095, 4096, 0x44000002, 0x4c0004ff, -1, INT32_MAX, INT32_MIN, 0x2c000000};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        int bad = garbage[i], size, inout = bad;
        CHECK_EQUAL(MPI_Comm_size(bad, &size), MPI_ERR_COMM);
        CHECK_EQUAL(MPI_Type_size(bad, &size), MPI_ERR_TYPE);
        CHECK_EQUAL(MPI_Group_size(bad, &size), MPI_ERR_GROUP);
        CHECK_EQUAL(MPI_Op_commutative(bad, &size), MPI_ERR_OP);
        CHECK_EQUAL(MPI_Info_get_nkeys(bad, &size), MPI_ERR_INFO);
        CHECK_EQUAL(MPI_Win_fence(0, bad), MPI_ERR_WIN);
        if (bad != MPI_REQUEST_NULL) CHECK_EQUAL(MPI_Wait(&inout, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
        CHECK_EQUAL(inout, bad);
        CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_SELF, bad), MPI_ERR_ERRHANDLER);
    }
    MPI_Offset offset;
    CHECK_EQUAL(MPI_File_get_size((MPI_File)(intptr_t)0x118, &offset), MPI_ERR_FILE);
    CHECK_EQUAL(MPI_File_get_size((MPI_File)&offset, &offset), MPI_ERR_FILE);
    // Constants of the other ABI.
    int x = 0;
    CHECK_EQUAL(MPI_Send(&x, 1, MPI_INT, -4, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK_EQUAL(MPI_Recv(&x, 1, MPI_INT, 0, -2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TAG);
    CHECK_EQUAL(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_SUCCESS);
}

static void statuses(void) {
    _Static_assert(sizeof(MPI_Status) == 20 && offsetof(MPI_Status, MPI_SOURCE) == 8, "MPICH's status");
    MPI_Status status = {1, 2, 3, 4, 77}, copy;
    int x = 5, y = 0, count;
    MPI_Sendrecv(&x, 1, MPI_INT, check_rank, 9, &y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_EQUAL(status.MPI_SOURCE, check_rank);
    CHECK_EQUAL(status.MPI_TAG, 9);
    // A call that returns one status leaves the error field as it was.
    CHECK_EQUAL(status.MPI_ERROR, 77);
    CHECK_EQUAL(status.count_lo, 4);
    CHECK_EQUAL(status.count_hi_and_cancelled, 0);
    MPI_Recv(&y, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG, "%d %d", status.MPI_SOURCE, status.MPI_TAG);
    MPI_Status_set_elements_x(&status, MPI_BYTE, ((MPI_Count)5 << 32) + 7);
    MPI_Status_set_cancelled(&status, 1);
    CHECK(status.count_lo == 7 && status.count_hi_and_cancelled == 11, "%d %d", status.count_lo, status.count_hi_and_cancelled);
    MPI_Count large;
    MPI_Get_elements_x(&status, MPI_BYTE, &large);
    CHECK(large == ((MPI_Count)5 << 32) + 7, "elements %lld", (long long)large);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    MPI_Fint fortran[MPI_F_STATUS_SIZE];
    MPI_Status_c2f(&status, fortran);
    CHECK_EQUAL(fortran[MPI_F_SOURCE], MPI_PROC_NULL);
    MPI_Status_f2c(fortran, &copy);
    CHECK(memcmp(&copy, &status, sizeof copy) == 0, "copy differs");

    // An array, in which one request fails.
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status all[3];
    int two[2] = {1, 2}, one[1], other[2];
    MPI_Irecv(one, 1, MPI_INT, check_rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(other, 2, MPI_INT, check_rank, 2, MPI_COMM_WORLD, &requests[2]);
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[0] != 0, "request %x", requests[0]);
    MPI_Send(two, 2, MPI_INT, check_rank, 1, MPI_COMM_WORLD);
    MPI_Send(two, 2, MPI_INT, check_rank, 2, MPI_COMM_WORLD);
    CHECK_EQUAL(MPI_Waitall(3, requests, all), MPI_ERR_IN_STATUS);
    CHECK_EQUAL(all[0].MPI_ERROR, MPI_ERR_TRUNCATE);
    CHECK_EQUAL(all[1].MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK_EQUAL(all[2].MPI_ERROR, MPI_SUCCESS);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL, "requests stay");
}

static int query(void *state, MPI_Status *status) {
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 3;
    return MPI_SUCCESS;
}
static int freed;
static int free_it(void *state) { return freed += *(int *)state, MPI_SUCCESS; }
static int cancel(void *state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

static void generalized(void) {
    MPI_Request request;
    MPI_Status status;
    int state = 4, count;
    MPI_Grequest_start(query, free_it, cancel, &state, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 4);
    CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQUAL(status.MPI_TAG, 3);
    CHECK_EQUAL(freed, 4);
    CHECK_EQUAL(request, MPI_REQUEST_NULL);
}

static MPI_Datatype represented;
static int file_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    int size;
    represented = type;
    CHECK(state == &represented, "state %p", state);
    MPI_Type_size(type, &size);
    *extent = size;
    return MPI_SUCCESS;
}
static int convert(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, int reads) {
    CHECK_EQUAL(type, MPI_INT);
    for (int i = 0; i < count; i++) {
        int *one = (int *)memory + position + i, value;
        char *other = (char *)file + sizeof(int) * i;
        if (reads) memcpy(&value, other, sizeof value), *one = ~value;
        else value = ~*one, memcpy(other, &value, sizeof value);
    }
    return MPI_SUCCESS;
}
static int reads(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state) {
    return (void)state, convert(memory, type, count, file, position, 1);
}
static int writes(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state) {
    return (void)state, convert(memory, type, count, file, position, 0);
}

static void files(const char *folder) {
    char name[4096];
    snprintf(name, sizeof name, "%s/mpich-abi-%d", folder, check_rank);
    MPI_File file;
    int mode, values[3] = {1, 2, 3}, raw[3] = {0};
    CHECK_EQUAL(MPI_Register_datarep("inverted", reads, writes, file_extent, &represented), MPI_SUCCESS);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    CHECK(file != MPI_FILE_NULL, "no file");
    MPI_File_get_amode(file, &mode);
    CHECK_EQUAL(mode, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    CHECK_EQUAL(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "inverted", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_File_write_at(file, 0, values, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, raw, 3, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(raw[0] == ~1 && raw[2] == ~3, "raw %d", raw[0]);
    MPI_File_seek(file, 1, MPI_SEEK_SET);
    MPI_Status status;
    MPI_File_read(file, raw, 2, MPI_INT, &status);
    int count;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 2 && raw[0] == ~2, "count %d", count);
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file && MPI_File_c2f(MPI_FILE_NULL) == 0, "file handles");
    MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL, "not null");
}

static void types(void) {
    MPI_Datatype made, inner[1];
    int sizes[2] = {8, 6}, parts[2] = {4, 3}, starts[2] = {0, 3}, integers[20], n[3], combiner;
    MPI_Aint addresses[1];
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE, &made);
    MPI_Type_get_envelope(made, &n[0], &n[1], &n[2], &combiner);
    CHECK_EQUAL(combiner, MPI_COMBINER_SUBARRAY);
    MPI_Type_get_contents(made, n[0], n[1], n[2], integers, addresses, inner);
    CHECK_EQUAL(integers[n[0] - 1], MPI_ORDER_FORTRAN);
    CHECK_EQUAL(inner[0], MPI_DOUBLE);
    MPI_Type_free(&made);
    int distributions[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int arguments[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 2};
    MPI_Type_create_darray(4, 1, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &made);
    MPI_Type_get_envelope(made, &n[0], &n[1], &n[2], &combiner);
    CHECK_EQUAL(combiner, MPI_COMBINER_DARRAY);
    MPI_Type_get_contents(made, n[0], n[1], n[2], integers, addresses, inner);
    CHECK_EQUAL(integers[5], MPI_DISTRIBUTE_CYCLIC);
    CHECK_EQUAL(integers[6], MPI_DISTRIBUTE_BLOCK);
    CHECK_EQUAL(integers[7], 2);
    CHECK_EQUAL(integers[8], MPI_DISTRIBUTE_DFLT_DARG);
    CHECK_EQUAL(integers[11], MPI_ORDER_C);
    int size;
    MPI_Type_size(made, &size);
    CHECK_EQUAL(size, 12 * (int)sizeof(int));
    MPI_Type_free(&made);
    // Handles of datatypes in an array for each process.
    int counts[check_size], places[check_size], sends[check_size], receives[check_size];
    MPI_Datatype kinds[check_size];
    for (int i = 0; i < check_size; i++) {
        counts[i] = 1, places[i] = i * (int)sizeof(int), kinds[i] = i % 2 ? MPI_INT : MPI_INT32_T;
        sends[i] = 100 * check_rank + i;
    }
    MPI_Alltoallw(sends, counts, places, kinds, receives, counts, places, kinds, MPI_COMM_WORLD);
    for (int i = 0; i < check_size; i++) CHECK_EQUAL(receives[i], 100 * i + check_rank);
    MPI_Request request;
    MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, sends, counts, places, kinds, MPI_COMM_WORLD, &request);
    for (int i = 0; i < check_size; i++) kinds[i] = 0; // the library has taken them
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(sends[0], check_rank);
}

static void topologies(void) {
    MPI_Comm ring;
    int from[1] = {(check_rank + check_size - 1) % check_size}, to[1] = {(check_rank + 1) % check_size}, result, in, out, weighted;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    MPI_Topo_test(ring, &result);
    CHECK_EQUAL(result, MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted);
    CHECK(in == 1 && out == 1 && !weighted, "%d %d %d", in, out, weighted);
    int mine = check_rank, theirs = -1, one[1] = {1};
    MPI_Aint nowhere[1] = {0};
    MPI_Datatype type[1] = {MPI_INT};
    MPI_Neighbor_alltoallw(&mine, one, nowhere, type, &theirs, one, nowhere, type, ring);
    CHECK_EQUAL(theirs, from[0]);
    MPI_Comm_compare(ring, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_CONGRUENT, "result %d", result);
    MPI_Comm_free(&ring);
    int period = 0, below, above;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &period, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &below, &above);
    CHECK_EQUAL(below, check_rank ? check_rank - 1 : MPI_PROC_NULL);
    CHECK_EQUAL(above, check_rank < check_size - 1 ? check_rank + 1 : MPI_PROC_NULL);
    MPI_Group all, own;
    MPI_Comm_group(ring, &all);
    MPI_Comm_group(MPI_COMM_SELF, &own);
    int ranks[2] = {MPI_PROC_NULL, check_rank}, translated[2];
    MPI_Group_translate_ranks(all, 2, ranks, own, translated);
    CHECK(translated[0] == MPI_PROC_NULL && translated[1] == 0, "%d %d", translated[0], translated[1]);
    MPI_Group_free(&all);
    MPI_Group_free(&own);
    MPI_Comm_free(&ring);
}

// The old names are not in the header of every version.
int MPI_Address(void *, MPI_Aint *);
int MPI_Type_struct(int, int *, MPI_Aint *, MPI_Datatype *, MPI_Datatype *);
int MPI_Errhandler_set(MPI_Comm, MPI_Errhandler);

static void other_names(void) {
    MPI_Aint address;
    int x, one = 1;
    MPI_Address(&x, &address);
    CHECK(address == (MPI_Aint)(intptr_t)&x, "address %lx", (long)address);
    MPI_Datatype type = MPI_INT, made;
    MPI_Aint zero = 0;
    MPI_Type_struct(1, &one, &zero, &type, &made);
    CHECK_EQUAL((PMPI_Type_f2c)((PMPI_Type_c2f)(made)), made);
    CHECK_EQUAL(MPI_Type_fromint(MPI_Type_toint(made)), made);
    MPI_Type_free(&made);
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length, thread;
    MPI_Get_processor_name(name, &length);
    CHECK_EQUAL(length, strlen(name));
    MPI_Query_thread(&thread);
    CHECK(thread >= MPI_THREAD_SINGLE && thread <= MPI_THREAD_MULTIPLE, "level %d", thread);
    MPI_Info info;
    MPI_Info_create(&info);
    char key[MPI_MAX_INFO_KEY + 2];
    memset(key, 'k', sizeof key);
    key[MPI_MAX_INFO_KEY - 1] = 0;
    CHECK_EQUAL(MPI_Info_set(info, key, "v"), MPI_SUCCESS);
    char back[MPI_MAX_INFO_KEY];
    MPI_Info_get_nthkey(info, 0, back);
    CHECK(strcmp(key, back) == 0, "key %zu", strlen(back));
    key[MPI_MAX_INFO_KEY - 1] = 'k';
    key[MPI_MAX_INFO_KEY] = 0;
    CHECK_EQUAL(MPI_Info_set(info, key, "v"), MPI_ERR_INFO_KEY);
    MPI_Info_free(&info);
    CHECK_EQUAL(info, MPI_INFO_NULL);
    void *buffer = NULL;
    int size = 0;
    if (MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS) {
        MPI_Buffer_detach(&buffer, &size);
        CHECK(buffer == MPI_BUFFER_AUTOMATIC, "buffer %p", buffer);
    }
    MPI_Request request;
    MPI_Irecv(&x, 1, MPI_INT, check_rank, 5, MPI_COMM_WORLD, &request);
    CHECK_EQUAL(MPIX_Request_is_complete(request), 0);
    MPI_Send(&one, 1, MPI_INT, check_rank, 5, MPI_COMM_WORLD);
    while (!MPIX_Request_is_complete(request)) {
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(MPIX_Query_cuda_support(), 0);
}

/* Fault tolerance, without any fault; a revoked communicator says MPICH's class. */
static void recovery(void) {
    MPI_Comm doomed, rest;
    MPI_Group failed;
    int flag = 4 | check_rank, code, class, size;
    MPI_Comm_dup(MPI_COMM_WORLD, &doomed);
    MPI_Comm_set_errhandler(doomed, MPI_ERRORS_RETURN);
    CHECK_EQUAL(MPIX_Comm_agree(doomed, &flag), MPI_SUCCESS);
    CHECK_EQUAL(flag & 4, 4);
    CHECK_EQUAL(MPIX_Comm_get_failed(doomed, &failed), MPI_SUCCESS);
    MPI_Group_size(failed, &size);
    CHECK_EQUAL(size, 0);
    if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
    CHECK_EQUAL(MPIX_Comm_failure_ack(doomed), MPI_SUCCESS);
    CHECK_EQUAL(MPIX_Comm_failure_get_acked(doomed, &failed), MPI_SUCCESS);
    if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
    CHECK_EQUAL(MPIX_Comm_revoke(doomed), MPI_SUCCESS);
    code = MPI_Barrier(doomed);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPIX_ERR_REVOKED);
    CHECK_EQUAL(MPIX_Comm_shrink(doomed, &rest), MPI_SUCCESS);
    MPI_Comm_size(rest, &size);
    CHECK_EQUAL(size, check_size);
    MPI_Barrier(rest);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&doomed);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    operations();
    error_handlers();
    attributes();
    errors();
    statuses();
    generalized();
    files(argc > 1 ? argv[1] : ".");
    types();
    topologies();
    other_names();
    recovery();
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) puts("mpich_abi: ok");
    MPI_Finalize();
    return 0;
}
