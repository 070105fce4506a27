/* Worlds and parts of worlds that meet at ports, by the names of services, and over sockets. The first argument says what is tried. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void expect_class(int code, int wanted)
{
    int class;
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, wanted);
}

/* What both sides of an intercommunicator do together. */
static void together(MPI_Comm inter, int high)
{
    int rank, size, remote, sum = 0, one = 1, new_rank;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK_EQUAL(sum, remote);
    MPI_Comm merged;
    MPI_Intercomm_merge(inter, high, &merged);
    MPI_Comm_rank(merged, &new_rank);
    CHECK_EQUAL(new_rank, high ? remote + rank : rank);
    int bytes = 1 << 20, all = size + remote;
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    memset(out, new_rank + 1, bytes);
    int next = (new_rank + 1) % all, before = (new_rank + all - 1) % all;
    MPI_Sendrecv(out, bytes, MPI_BYTE, next, 2, in, bytes, MPI_BYTE, before, 2, merged, MPI_STATUS_IGNORE);
    CHECK_EQUAL(in[bytes - 1], before + 1);
    free(out);
    free(in);
    MPI_Comm_free(&merged);
}

static void serve(MPI_Comm comm, const char *service, int clients)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(service, MPI_INFO_NULL, port);
    }
    for (int client = 0; client < clients; client++) {
        MPI_Comm inter;
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &inter);
        together(inter, 0);
        MPI_Comm_disconnect(&inter);
    }
    if (rank == 0) {
        MPI_Unpublish_name(service, MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
}

static void call_at(MPI_Comm comm, const char *service, int rounds)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int round = 0; round < rounds; round++) {
        char port[MPI_MAX_PORT_NAME] = "";
        if (rank == 0) {
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            int code, tries = 0;
            while ((code = MPI_Lookup_name(service, MPI_INFO_NULL, port)) != MPI_SUCCESS && tries++ < 2000) {
                expect_class(code, MPI_ERR_NAME);
                usleep(10000);
            }
            CHECK_EQUAL(code, MPI_SUCCESS);
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        }
        MPI_Comm inter;
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &inter);
        together(inter, 1);
        MPI_Comm_disconnect(&inter);
    }
}

/* Two halves of one world, several times. */
static void within(void)
{
    char service[64];
    int number = (int)getpid();
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(service, sizeof service, "connect test %d", number);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    if (check_rank % 2 == 0)
        serve(half, service, 3);
    else
        call_at(half, service, 3);
    MPI_Comm_free(&half);
}

static void join(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), connection;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (check_rank == 0) {
        CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0, "listen");
        CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
        MPI_Send(&address, sizeof address, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        connection = accept(listener, NULL, NULL);
        CHECK(connection >= 0, "accept");
        close(listener);
    } else {
        MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        connection = listener;
        CHECK(connect(connection, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    }
    MPI_Comm inter;
    MPI_Comm_join(connection, &inter);
    together(inter, check_rank);
    MPI_Comm_disconnect(&inter);
    /* The socket is the program's again. */
    char byte = (char)check_rank;
    CHECK(write(connection, &byte, 1) == 1 && read(connection, &byte, 1) == 1, "the socket");
    CHECK_EQUAL(byte, 1 - check_rank);
    close(connection);
}

static void mistakes(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char port[MPI_MAX_PORT_NAME], other[MPI_MAX_PORT_NAME], service[64];
    snprintf(service, sizeof service, "mistakes %d", (int)getpid());
    MPI_Comm inter;
    expect_class(MPI_Comm_connect("no port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_ERR_PORT);
    expect_class(MPI_Comm_accept("no port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_ERR_PORT);
    expect_class(MPI_Close_port("no port"), MPI_ERR_PORT);
    expect_class(MPI_Comm_join(-1, &inter), MPI_ERR_OTHER);
    expect_class(MPI_Comm_join(987, &inter), MPI_ERR_OTHER);
    SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
    SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, other));
    CHECK(strcmp(port, other) != 0, "two ports have two names");
    /* Nobody accepts. */
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "1");
    expect_class(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    MPI_Info_free(&info);
    SUCCEEDS(MPI_Close_port(port));
    expect_class(MPI_Close_port(port), MPI_ERR_PORT);
    expect_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    expect_class(MPI_Lookup_name(service, MPI_INFO_NULL, port), MPI_ERR_NAME);
    SUCCEEDS(MPI_Publish_name(service, MPI_INFO_NULL, other));
    expect_class(MPI_Publish_name(service, MPI_INFO_NULL, other), MPI_ERR_SERVICE);
    SUCCEEDS(MPI_Lookup_name(service, MPI_INFO_NULL, port));
    CHECK(strcmp(port, other) == 0, "%s", port);
    expect_class(MPI_Unpublish_name(service, MPI_INFO_NULL, "other"), MPI_ERR_SERVICE);
    SUCCEEDS(MPI_Unpublish_name(service, MPI_INFO_NULL, other));
    expect_class(MPI_Unpublish_name(service, MPI_INFO_NULL, other), MPI_ERR_SERVICE);
    expect_class(MPI_Lookup_name(service, MPI_INFO_NULL, port), MPI_ERR_NAME);
    /* One is published, and one open, at the end: nothing of them may be left. */
    SUCCEEDS(MPI_Publish_name(service, MPI_INFO_NULL, other));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *what = argv[1];
    if (strcmp(what, "within") == 0)
        within();
    else if (strcmp(what, "join") == 0)
        join();
    else if (strcmp(what, "mistakes") == 0)
        mistakes();
    else if (strcmp(what, "server") == 0)
        serve(MPI_COMM_WORLD, argv[2], atoi(argv[3]));
    else if (strcmp(what, "client") == 0)
        call_at(MPI_COMM_WORLD, argv[2], atoi(argv[3]));
    else if (strcmp(what, "stays") == 0) {
        /* Connected with the other job, which is killed. */
        char port[MPI_MAX_PORT_NAME] = "";
        MPI_Comm inter;
        if (strcmp(argv[3], "server") == 0) {
            if (check_rank == 0) {
                MPI_Open_port(MPI_INFO_NULL, port);
                MPI_Publish_name(argv[2], MPI_INFO_NULL, port);
            }
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        } else {
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            while (check_rank == 0 && MPI_Lookup_name(argv[2], MPI_INFO_NULL, port) != MPI_SUCCESS)
                usleep(10000);
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        }
        MPI_Barrier(inter);
        printf("connected\n");
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        if (strcmp(argv[3], "server") == 0 && check_rank == 0)
            abort();
        MPI_Barrier(inter);
    } else
        CHECK(0, "%s is nothing that can be tried", what);
    return check_end("connect");
}
