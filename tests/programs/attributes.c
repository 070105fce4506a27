/* Attributes: copy and delete callbacks, the order of deletion, errors of callbacks, keys that are freed in use, predefined attributes. */
#include "check.h"

static int deleted[16], deletions, copies, refuse;

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    CHECK(comm != MPI_COMM_NULL && keyval > 0, "a delete callback gets the communicator and the key");
    CHECK(extra == (void *)&deletions, "a delete callback gets its extra state");
    if (refuse)
        return refuse;
    deleted[deletions++] = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static int on_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    CHECK(comm != MPI_COMM_NULL && keyval > 0, "a copy callback gets the old communicator and the key");
    CHECK(extra == (void *)&deletions, "a copy callback gets its extra state");
    copies++;
    if (refuse)
        return refuse;
    *(void **)out = (void *)((intptr_t)in + 1000);
    *flag = (intptr_t)in != 13;
    return MPI_SUCCESS;
}

/* A delete callback may free other objects, and read the object that loses the attribute. */
static int frees_a_communicator(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int size;
    (void)keyval, (void)extra;
    CHECK_EQUAL(MPI_Comm_size(comm, &size), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Comm_free((MPI_Comm *)value), MPI_SUCCESS);
    return MPI_SUCCESS;
}

static int type_deletions;

static int on_type_delete(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)extra;
    type_deletions += (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static long value_of(MPI_Comm comm, int key)
{
    void *value = NULL;
    int flag = -1;
    SUCCEEDS(MPI_Comm_get_attr(comm, key, &value, &flag));
    return flag ? (long)(intptr_t)value : -1;
}

static void callbacks(void)
{
    MPI_Comm comm, twin;
    int keys[4], key;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int index = 0; index < 4; index++) {
        MPI_Comm_create_keyval(index == 2 ? MPI_COMM_DUP_FN : index == 3 ? MPI_COMM_NULL_COPY_FN : on_copy, on_delete, &keys[index], &deletions);
        SUCCEEDS(MPI_Comm_set_attr(comm, keys[index], (void *)(intptr_t)(index == 1 ? 13 : 10 + 10 * index)));
    }
    MPI_Comm_dup(comm, &twin);
    CHECK_EQUAL(copies, 2);
    CHECK_EQUAL(value_of(twin, keys[0]), 1010);
    CHECK_EQUAL(value_of(twin, keys[1]), -1);
    CHECK_EQUAL(value_of(twin, keys[2]), 30);
    CHECK_EQUAL(value_of(twin, keys[3]), -1);

    /* A key that is freed serves its attributes on. */
    key = keys[2];
    SUCCEEDS(MPI_Comm_free_keyval(&keys[2]));
    CHECK_EQUAL(keys[2], MPI_KEYVAL_INVALID);
    void *value;
    int flag;
    SUCCEEDS(MPI_Comm_get_attr(comm, key, &value, &flag));
    CHECK(flag && value == (void *)30, "who has kept the number finds the value");
    int again = key;
    SUCCEEDS(MPI_Comm_free_keyval(&again));
    deletions = 0;
    SUCCEEDS(MPI_Comm_free(&twin));
    CHECK_EQUAL(deletions, 2);
    CHECK(deleted[0] + deleted[1] == 1040, "both attributes of the duplicate are deleted");
    SUCCEEDS(MPI_Comm_delete_attr(comm, key));
    CHECK_EQUAL(MPI_Comm_get_attr(comm, key, &value, &flag), MPI_ERR_KEYVAL);

    /* A value that is replaced is deleted first; a refusal leaves everything as it was. */
    deletions = 0;
    SUCCEEDS(MPI_Comm_set_attr(comm, keys[0], (void *)11));
    CHECK_EQUAL(deleted[0], 10);
    refuse = MPI_ERR_OTHER;
    CHECK_EQUAL(MPI_Comm_set_attr(comm, keys[0], (void *)12), MPI_ERR_OTHER);
    CHECK_EQUAL(MPI_Comm_delete_attr(comm, keys[0]), MPI_ERR_OTHER);
    CHECK_EQUAL(MPI_Comm_dup(comm, &twin), MPI_ERR_OTHER);
    CHECK_EQUAL(MPI_Comm_free(&comm), MPI_ERR_OTHER);
    refuse = 0;
    CHECK_EQUAL(value_of(comm, keys[0]), 11);
    SUCCEEDS(MPI_Comm_delete_attr(comm, keys[0]));
    CHECK_EQUAL(value_of(comm, keys[0]), -1);
    CHECK(MPI_Comm_delete_attr(comm, keys[0]) != MPI_SUCCESS, "nothing is left to delete");
    CHECK_EQUAL(MPI_Comm_get_attr(comm, MPI_KEYVAL_INVALID, &value, &flag), MPI_ERR_KEYVAL);
    CHECK_EQUAL(MPI_Comm_set_attr(comm, 123456, NULL), MPI_ERR_KEYVAL);
    CHECK(MPI_Comm_set_attr(comm, MPI_TAG_UB, NULL) != MPI_SUCCESS, "predefined attributes cannot be set");

    MPI_Comm inner;
    MPI_Comm_dup(MPI_COMM_SELF, &inner);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees_a_communicator, &key, NULL);
    SUCCEEDS(MPI_Comm_set_attr(comm, key, &inner));
    SUCCEEDS(MPI_Comm_free_keyval(&key));
    SUCCEEDS(MPI_Comm_free(&comm));
    CHECK(inner == MPI_COMM_NULL && comm == MPI_COMM_NULL, "both are freed");

    /* idup copies attributes as well. */
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    SUCCEEDS(MPI_Comm_set_attr(comm, keys[0], (void *)1));
    MPI_Comm_idup(comm, &twin, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value_of(twin, keys[0]), 1001);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Comm_free_keyval(&keys[1]);
    MPI_Comm_free_keyval(&keys[3]);
}

static void of_types(void)
{
    MPI_Datatype type, twin;
    int key, flag;
    void *value;
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, on_type_delete, &key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &type);
    SUCCEEDS(MPI_Type_set_attr(type, key, (void *)5));
    MPI_Type_dup(type, &twin);
    SUCCEEDS(MPI_Type_get_attr(twin, key, &value, &flag));
    CHECK(flag && value == (void *)5, "MPI_TYPE_DUP_FN copies");
    MPI_Type_free(&type);
    CHECK_EQUAL(type_deletions, 5);
    MPI_Type_free(&twin);
    CHECK_EQUAL(type_deletions, 10);
    SUCCEEDS(MPI_Type_set_attr(MPI_INT, key, (void *)7));
    SUCCEEDS(MPI_Type_delete_attr(MPI_INT, key));
    CHECK_EQUAL(type_deletions, 17);
    SUCCEEDS(MPI_Type_free_keyval(&key));
}

static int predefined(int key)
{
    int *value, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag);
    CHECK(flag, "predefined attribute %d is set", key);
    return *value;
}

static void of_world(void)
{
    CHECK(predefined(MPI_TAG_UB) >= 32767, "tags up to 32767 at least");
    CHECK(predefined(MPI_UNIVERSE_SIZE) >= check_size, "the universe has room for this job at least");
    CHECK_EQUAL(predefined(MPI_APPNUM), 0);
    predefined(MPI_WTIME_IS_GLOBAL);
    predefined(MPI_IO);
    predefined(MPI_HOST);
    int class, code;
    CHECK(predefined(MPI_LASTUSEDCODE) >= MPI_ERR_LASTCODE, "no code is above MPI_LASTUSEDCODE");
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    CHECK_EQUAL(predefined(MPI_LASTUSEDCODE), code);
}

/* Deleted by MPI_Finalize before anything else, the last set first. */
static int at_the_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int finalized, rank;
    (void)keyval, (void)extra;
    MPI_Finalized(&finalized);
    CHECK(!finalized, "MPI still works");
    CHECK_EQUAL(MPI_Comm_rank(comm, &rank), MPI_SUCCESS);
    /* Written at exit, all lines at once, so that none of another rank comes between them. */
    printf("end %d of rank %d\n", (int)(intptr_t)value, check_rank);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    callbacks();
    of_types();
    of_world();
    for (int index = 1; index <= 3; index++) {
        int key;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)(intptr_t)index);
        MPI_Comm_free_keyval(&key);
    }
    return check_end("attributes");
}
