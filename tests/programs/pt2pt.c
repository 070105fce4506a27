/* The rest of point to point: order, wildcards, probe, matched probe, truncation, cancel, sendrecv, PROC_NULL, all wait and test forms. */
#include "check.h"

#define WORLD MPI_COMM_WORLD

static void order_is_kept(int left, int right)
{
    enum { count = 500 };
    MPI_Request requests[count];
    static int sent[count], received[count];
    for (int index = 0; index < count; index++) {
        sent[index] = check_rank * count + index;
        MPI_Isend(&sent[index], 1, MPI_INT, right, 5, WORLD, &requests[index]);
    }
    /* Exact and wild receives in turn must see the messages of one sender in their order. */
    for (int index = 0; index < count; index++) {
        MPI_Status status;
        MPI_Recv(&received[index], 1, MPI_INT, index % 3 == 0 ? MPI_ANY_SOURCE : left,
                 index % 2 == 0 ? MPI_ANY_TAG : 5, WORLD, &status);
        CHECK_EQUAL(status.MPI_SOURCE, left);
        CHECK_EQUAL(status.MPI_TAG, 5);
        CHECK_EQUAL(received[index], left * count + index);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(WORLD);
    /* And the same with the receives posted before the sends. */
    for (int index = 0; index < count; index++)
        MPI_Irecv(&received[index], 1, MPI_INT, index % 3 == 0 ? MPI_ANY_SOURCE : left,
                  index % 2 == 0 ? MPI_ANY_TAG : 6, WORLD, &requests[index]);
    MPI_Barrier(WORLD);
    for (int index = 0; index < count; index++)
        MPI_Send(&sent[index], 1, MPI_INT, right, 6, WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(received[index], left * count + index);
    MPI_Barrier(WORLD);
}

static void tags_select(int left, int right)
{
    int one = 1, two = 2, value = 0;
    MPI_Request requests[2];
    MPI_Isend(&one, 1, MPI_INT, right, 1, WORLD, &requests[0]);
    MPI_Isend(&two, 1, MPI_INT, right, 2, WORLD, &requests[1]);
    MPI_Recv(&value, 1, MPI_INT, left, 2, WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, 2);
    MPI_Recv(&value, 1, MPI_INT, left, 1, WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    int *bound, found;
    MPI_Comm_get_attr(WORLD, MPI_TAG_UB, &bound, &found);
    CHECK(found, "MPI_TAG_UB is there");
    MPI_Sendrecv(&one, 1, MPI_INT, right, *bound, &value, 1, MPI_INT, left, *bound, WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, 1);
}

static void probes(int left, int right)
{
    static const int sizes[] = {3, 5000, 300000};
    for (int size = 0; size < 3; size++) {
        int length = sizes[size], flag = 0, count;
        unsigned char *data = malloc((size_t)length), *got = calloc((size_t)length, 1);
        MPI_Request request, matched;
        MPI_Status status;
        MPI_Message message;
        fill_bytes(data, (size_t)length, (uint64_t)check_rank);

        MPI_Isend(data, length, MPI_BYTE, right, 20, WORLD, &request);
        MPI_Probe(left, MPI_ANY_TAG, WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQUAL(count, length);
        CHECK_EQUAL(status.MPI_TAG, 20);
        MPI_Recv(got, count, MPI_BYTE, left, 20, WORLD, &status);
        CHECK_EQUAL(wrong_byte(got, (size_t)length, (uint64_t)left), -1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);

        MPI_Isend(data, length, MPI_BYTE, right, 21, WORLD, &request);
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, 21, WORLD, &flag, &status);
        CHECK_EQUAL(status.MPI_SOURCE, left);
        MPI_Recv(got, length, MPI_BYTE, left, 21, WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);

        /* A matched message is out of the reach of every other receive. */
        MPI_Request pair[2];
        unsigned char first = 1, second = 2, value = 0;
        MPI_Isend(&first, 1, MPI_BYTE, right, 22, WORLD, &pair[0]);
        MPI_Isend(&second, 1, MPI_BYTE, right, 22, WORLD, &pair[1]);
        MPI_Mprobe(left, 22, WORLD, &message, &status);
        CHECK(message != MPI_MESSAGE_NULL, "a message was matched");
        MPI_Recv(&value, 1, MPI_BYTE, left, 22, WORLD, &status);
        CHECK_EQUAL(value, 2);
        MPI_Mrecv(&value, 1, MPI_BYTE, &message, &status);
        CHECK_EQUAL(value, 1);
        CHECK(message == MPI_MESSAGE_NULL, "a received message is null");
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);

        memset(got, 0, (size_t)length);
        MPI_Isend(data, length, MPI_BYTE, right, 23, WORLD, &request);
        flag = 0;
        while (!flag)
            MPI_Improbe(left, 23, WORLD, &flag, &message, &status);
        MPI_Imrecv(got, length, MPI_BYTE, &message, &matched);
        MPI_Wait(&matched, &status);
        CHECK_EQUAL(wrong_byte(got, (size_t)length, (uint64_t)left), -1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(data);
        free(got);
    }
    MPI_Message message;
    MPI_Status status;
    MPI_Mprobe(MPI_PROC_NULL, 1, WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC, "matched probe of MPI_PROC_NULL gives MPI_MESSAGE_NO_PROC");
    MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status);
    CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
}

static void truncation(int left, int right)
{
    static const int sizes[] = {100, 200000};
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    for (int size = 0; size < 2; size++) {
        int length = sizes[size], class_ = 0;
        unsigned char *data = malloc((size_t)length), *got = malloc((size_t)length);
        fill_bytes(data, (size_t)length, 9);
        memset(got, 0x55, (size_t)length);
        MPI_Request request;
        MPI_Isend(data, length, MPI_BYTE, right, 30, WORLD, &request);
        int code = MPI_Recv(got, length / 2, MPI_BYTE, left, 30, WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class_);
        CHECK_EQUAL(class_, MPI_ERR_TRUNCATE);
        CHECK_EQUAL(got[length / 2], 0x55);
        CHECK_EQUAL(got[length - 1], 0x55);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        /* The next message is not disturbed. */
        MPI_Sendrecv(data, length, MPI_BYTE, right, 31, got, length, MPI_BYTE, left, 31, WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(wrong_byte(got, (size_t)length, 9), -1);
        free(data);
        free(got);
    }
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
}

static void cancellation(int left, int right)
{
    int value = 0, flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, left, 40, WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "a receive that nobody matches can be cancelled");
    MPI_Barrier(WORLD);
    /* What was sent afterwards is not swallowed by the cancelled receive. */
    int sent = 77;
    MPI_Sendrecv(&sent, 1, MPI_INT, right, 40, &value, 1, MPI_INT, left, 40, WORLD, &status);
    CHECK_EQUAL(value, 77);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag, "a message that arrived was not cancelled");
}

static void null_process(void)
{
    int value = 5;
    MPI_Status status;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, &status);
    CHECK_EQUAL(value, 5);
    CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQUAL(status.MPI_TAG, MPI_ANY_TAG);
    int count;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 0);
    MPI_Probe(MPI_PROC_NULL, 3, WORLD, &status);
    CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
}

static void sendrecv(int left, int right)
{
    static const int sizes[] = {1, 1000, 100000};
    for (int size = 0; size < 3; size++) {
        int length = sizes[size];
        int *data = malloc((size_t)length * sizeof *data), *got = malloc((size_t)length * sizeof *got);
        for (int index = 0; index < length; index++)
            data[index] = check_rank * 7 + index;
        MPI_Sendrecv(data, length, MPI_INT, right, 50, got, length, MPI_INT, left, 50, WORLD, MPI_STATUS_IGNORE);
        for (int index = 0; index < length; index++)
            CHECK_EQUAL(got[index], left * 7 + index);
        MPI_Sendrecv_replace(data, length, MPI_INT, right, 51, left, 51, WORLD, MPI_STATUS_IGNORE);
        for (int index = 0; index < length; index++)
            CHECK_EQUAL(data[index], left * 7 + index);
        MPI_Request request;
        MPI_Isendrecv(got, length, MPI_INT, left, 52, data, length, MPI_INT, right, 52, WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int index = 0; index < length; index++)
            CHECK_EQUAL(data[index], check_rank * 7 + index);
        MPI_Isendrecv_replace(data, length, MPI_INT, right, 53, left, 53, WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int index = 0; index < length; index++)
            CHECK_EQUAL(data[index], left * 7 + index);
        free(data);
        free(got);
    }
}

static void completion(int left, int right)
{
    enum { count = 8 };
    int sent[count], received[count], index, flag, outcount, indices[count];
    MPI_Request sends[count], receives[count];
    MPI_Status status, statuses[count];
    for (int form = 0; form < 6; form++) {
        for (int item = 0; item < count; item++) {
            received[item] = -1;
            sent[item] = check_rank * 100 + item;
            MPI_Irecv(&received[item], 1, MPI_INT, left, 60 + item, WORLD, &receives[item]);
        }
        for (int item = count - 1; item >= 0; item--)
            MPI_Isend(&sent[item], 1, MPI_INT, right, 60 + item, WORLD, &sends[item]);
        int done = 0, seen[count] = {0};
        while (done < count) {
            switch (form) {
            case 0:
                MPI_Waitany(count, receives, &index, &status);
                CHECK(index >= 0 && index < count && !seen[index], "index %d", index);
                CHECK_EQUAL(status.MPI_TAG, 60 + index);
                seen[index] = 1;
                done++;
                break;
            case 1:
                MPI_Testany(count, receives, &index, &flag, &status);
                if (flag) {
                    CHECK(index >= 0 && index < count && !seen[index], "index %d", index);
                    CHECK_EQUAL(status.MPI_TAG, 60 + index);
                    seen[index] = 1;
                    done++;
                }
                break;
            case 2:
            case 3:
                if (form == 2)
                    MPI_Waitsome(count, receives, &outcount, indices, statuses);
                else
                    MPI_Testsome(count, receives, &outcount, indices, statuses);
                for (int item = 0; item < outcount; item++) {
                    CHECK(!seen[indices[item]], "index %d comes twice", indices[item]);
                    CHECK_EQUAL(statuses[item].MPI_TAG, 60 + indices[item]);
                    seen[indices[item]] = 1;
                }
                done += outcount;
                break;
            case 4:
                MPI_Waitall(count, receives, statuses);
                done = count;
                break;
            default:
                MPI_Testall(count, receives, &flag, statuses);
                done = flag ? count : 0;
            }
        }
        for (int item = 0; item < count; item++) {
            CHECK_EQUAL(received[item], left * 100 + item);
            CHECK(receives[item] == MPI_REQUEST_NULL, "request %d is null after form %d", item, form);
        }
        MPI_Waitany(count, receives, &index, &status);
        CHECK_EQUAL(index, MPI_UNDEFINED);
        MPI_Testsome(count, receives, &outcount, indices, statuses);
        CHECK_EQUAL(outcount, MPI_UNDEFINED);
        MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    }
    int request_done = 0;
    MPI_Request request;
    MPI_Irecv(received, 1, MPI_INT, left, 70, WORLD, &request);
    MPI_Request_get_status(request, &request_done, MPI_STATUS_IGNORE);
    MPI_Send(sent, 1, MPI_INT, right, 70, WORLD);
    request_done = 0;
    while (!request_done)
        MPI_Request_get_status(request, &request_done, &status);
    CHECK_EQUAL(status.MPI_TAG, 70);
    CHECK(request != MPI_REQUEST_NULL, "the query of a status does not free");
    MPI_Wait(&request, &status);
    /* A freed request still completes. */
    MPI_Isend(&sent[0], 1, MPI_INT, right, 71, WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(received, 1, MPI_INT, left, 71, WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(received[0], left * 100);
    MPI_Barrier(WORLD);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    order_is_kept(left, right);
    tags_select(left, right);
    probes(left, right);
    truncation(left, right);
    cancellation(left, right);
    null_process();
    sendrecv(left, right);
    completion(left, right);
    return check_end("pt2pt");
}
