/* MPI 5.0, chapters 7 and 16: communicators with hints, remote groups, communicators between groups, ranges of ranks, and the
 * deprecated names for attributes. */
#include "../programs/check.h"

static int copied, deleted;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)keyval;
    CHECK(extra == &copied, "the extra state");
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    CHECK(extra == &copied, "the extra state");
    deleted++;
    return MPI_SUCCESS;
}

static void deprecated_attributes(void)
{
    int keyval, flag, number = 7, *found;
    MPI_Comm twin;
    SUCCEEDS(MPI_Keyval_create(copy, delete, &keyval, &copied));
    SUCCEEDS(MPI_Attr_put(MPI_COMM_WORLD, keyval, &number));
    SUCCEEDS(MPI_Attr_get(MPI_COMM_WORLD, keyval, &found, &flag));
    CHECK(flag && found == &number, "the attribute");
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    CHECK_EQUAL(copied, 1);
    SUCCEEDS(MPI_Attr_get(twin, keyval, &found, &flag));
    CHECK(flag && found == &number, "the copied attribute");
    SUCCEEDS(MPI_Attr_delete(MPI_COMM_WORLD, keyval));
    CHECK_EQUAL(deleted, 1);
    SUCCEEDS(MPI_Attr_get(MPI_COMM_WORLD, keyval, &found, &flag));
    CHECK_EQUAL(flag, 0);
    SUCCEEDS(MPI_Comm_free(&twin));
    CHECK_EQUAL(deleted, 2);
    SUCCEEDS(MPI_Keyval_free(&keyval));
    CHECK_EQUAL(keyval, MPI_KEYVAL_INVALID);
}

/* A hint that the library does not know may be forgotten; one that it keeps has the value that was given. */
static void has_hint(MPI_Comm comm, const char *value)
{
    MPI_Info info;
    char text[64];
    int flag, length = sizeof text;
    SUCCEEDS(MPI_Comm_get_info(comm, &info));
    CHECK(info != MPI_INFO_NULL, "hints of a communicator");
    SUCCEEDS(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, text, &flag));
    CHECK(!flag || strcmp(text, value) == 0, "the hint is %s, expected %s", text, value);
    SUCCEEDS(MPI_Info_free(&info));
}

static void hints(void)
{
    MPI_Info info;
    MPI_Comm twin;
    MPI_Request request;
    int result;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    SUCCEEDS(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &twin));
    SUCCEEDS(MPI_Comm_compare(MPI_COMM_WORLD, twin, &result));
    CHECK_EQUAL(result, MPI_CONGRUENT);
    has_hint(twin, "true");
    SUCCEEDS(MPI_Info_set(info, "mpi_assert_no_any_tag", "false"));
    SUCCEEDS(MPI_Comm_set_info(twin, info));
    has_hint(twin, "false");
    SUCCEEDS(MPI_Comm_free(&twin));
    SUCCEEDS(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &twin, &request));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    has_hint(twin, "false");
    SUCCEEDS(MPI_Barrier(twin));
    SUCCEEDS(MPI_Comm_free(&twin));
    SUCCEEDS(MPI_Info_free(&info));
}

/* The even ranks and the odd ones meet, by group alone. */
static void between_groups(void)
{
    if (check_size < 2)
        return;
    MPI_Group world, even, odd, remote;
    MPI_Comm between;
    int ranges[1][3] = {{0, (check_size - 1) / 2 * 2, 2}}, size, result, others = 0, one = check_rank;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Group_range_incl(world, 1, ranges, &even));
    SUCCEEDS(MPI_Group_range_excl(world, 1, ranges, &odd));
    SUCCEEDS(MPI_Group_size(odd, &size));
    CHECK_EQUAL(size, check_size / 2);
    int is_odd = check_rank % 2;
    SUCCEEDS(MPI_Intercomm_create_from_groups(is_odd ? odd : even, 0, is_odd ? even : odd, 0, "chapter 7", MPI_INFO_NULL,
                                              MPI_ERRORS_RETURN, &between));
    SUCCEEDS(MPI_Comm_remote_group(between, &remote));
    SUCCEEDS(MPI_Group_compare(remote, is_odd ? even : odd, &result));
    CHECK_EQUAL(result, MPI_IDENT);
    SUCCEEDS(MPI_Allreduce(&one, &others, 1, MPI_INT, MPI_SUM, between));
    int expected = 0;
    for (int peer = !is_odd; peer < check_size; peer += 2)
        expected += peer;
    CHECK_EQUAL(others, expected);
    SUCCEEDS(MPI_Comm_free(&between));
    SUCCEEDS(MPI_Group_free(&remote));
    SUCCEEDS(MPI_Group_free(&odd));
    SUCCEEDS(MPI_Group_free(&even));
    SUCCEEDS(MPI_Group_free(&world));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    deprecated_attributes();
    hints();
    between_groups();
    return check_end("chapter_07_communicators");
}
