/* libvarve_mpi: the communicator of an MPI program as a plug. It uses the public headers alone, and
 * plain MPI-3.
 *
 * Small operations are MPI's own non-blocking collectives. Operations with parts of different
 * lengths, or longer than a piece, use messages between ranks. Each message is at most a piece
 * long. */
#include "comm/mpi.h"
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <varve/varve_mpi.h>

size_t vv_mpi_piece = (size_t)1 << 30;

struct mpi_group {
	MPI_Comm comm;
	int rank, size;
	/* of the operation in progress; counted alike on all ranks, so operations do not mix */
	int tag;
	int under_way;
	int failed;
	unsigned looks; /* that found nothing */
	char *gone;     /* of each rank: it has reported that it gave up */
	char message[MPI_MAX_ERROR_STRING + 160];
	char absent[200];
};

struct mpi_work {
	const char *what;
	int n, done;
	MPI_Request *request;
	int *expect; /* bytes that a receive must bring; -1: not a receive */
	uint64_t *flipped;
	size_t n_flipped;
};

/* every MPI has these tags; the last is for ranks that give up */
enum { TAGS = 32767, GONE = 32767 };

/* ---- errors ---------------------------------------------------------------------------------- */

static int fail(struct mpi_group *g, const char *what, int error)
{
	char words[MPI_MAX_ERROR_STRING] = "";
	int len = 0;

	if (MPI_Error_string(error, words, &len) != MPI_SUCCESS)
		snprintf(words, sizeof(words), "MPI error %d", error);
	snprintf(g->message, sizeof(g->message), "%s: %s", what, words);
	g->failed = 1;
	return VARVE_EPEER;
}

static int fail_plain(struct mpi_group *g, int code, const char *message)
{
	snprintf(g->message, sizeof(g->message), "%s", message);
	g->failed = 1;
	return code;
}

/* After MPI_Finalize, a call of MPI ends the program with an unhelpful message. */
static int is_over(void)
{
	int over = 0;

	MPI_Finalized(&over);
	return over;
}

/* ---- an operation: a set of requests --------------------------------------------------------- */

static void drop(struct mpi_work *w)
{
	if (!w)
		return;
	free(w->request);
	free(w->expect);
	free(w);
}

/* One with room for `cap` requests. */
static int begin(struct mpi_group *g, const char *what, uint64_t cap, struct mpi_work **out)
{
	struct mpi_work *w;

	if (is_over())
		return fail_plain(g, VARVE_EINVAL, "MPI_Finalize was called before varve_close");
	if (cap > INT32_MAX)
		return fail_plain(g, VARVE_EINVAL, "more messages than MPI can count");
	g->tag = (g->tag + 1) % TAGS;
	w = calloc(1, sizeof(*w));
	if (!w)
		goto out;
	w->what = what;
	w->request = calloc(cap + 1, sizeof(*w->request));
	w->expect = calloc(cap + 1, sizeof(*w->expect));
	if (!w->request || !w->expect)
		goto out;
	*out = w;
	return 0;
out:
	drop(w);
	return fail_plain(g, VARVE_ENOMEM, "out of memory for MPI requests");
}

static MPI_Request *next(struct mpi_work *w, int expect)
{
	w->expect[w->n] = expect;
	return &w->request[w->n++];
}

/* Hands the operation over, or the error of its beginning. Begun requests stay MPI's, and so does
 * their memory. */
static int begun(struct mpi_group *g, struct mpi_work *w, int error, void **op)
{
	if (error != MPI_SUCCESS) {
		int rc = fail(g, w->what, error);

		drop(w);
		return rc;
	}
	g->under_way = 1;
	*op = w;
	return 0;
}

/* A longer message is an error to MPI, a shorter one is not. */
static int check_length(struct mpi_group *g, const struct mpi_work *w, const MPI_Status *status)
{
	int got = 0, expect = w->expect[w->done];

	if (expect < 0)
		return 0;
	MPI_Get_count(status, MPI_BYTE, &got);
	if (got == expect)
		return 0;
	snprintf(g->message, sizeof(g->message), "%s: %d bytes came from rank %d instead of %d", w->what, got, status->MPI_SOURCE,
		 expect);
	g->failed = 1;
	return VARVE_EPEER;
}

/* One by one: a test of any request makes progress on all of them. */
static int test_all(struct mpi_group *g, struct mpi_work *w)
{
	MPI_Status status;
	int yes, error, rc = 0;

	for (; w->done < w->n && rc == 0; w->done++) {
		error = MPI_Test(&w->request[w->done], &yes, &status);
		if (error != MPI_SUCCESS)
			return fail(g, w->what, error);
		if (!yes)
			return 0;
		rc = check_length(g, w, &status);
	}
	return rc ? rc : 1;
}

/* ---- ranks that give up ---------------------------------------------------------------------- */

/* MPI does not report which rank did not come to an operation. So a rank that gives up reports that
 * to all others. Waiting ranks then give up as well, and report it too. A rank without a report one
 * second later is absent. The channel is neither used nor freed afterwards. */

/* The number of ranks that have given up by now. */
static int count_gone(struct mpi_group *g)
{
	MPI_Status status;
	int yes = 1, n = 0;

	while (MPI_Iprobe(MPI_ANY_SOURCE, GONE, g->comm, &yes, &status) == MPI_SUCCESS && yes &&
	       MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, GONE, g->comm, MPI_STATUS_IGNORE) == MPI_SUCCESS)
		g->gone[status.MPI_SOURCE] = 1;
	for (int r = 0; r < g->size; r++)
		n += g->gone[r];
	return n;
}

static void sleep_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* Lists the ranks without a report: "rank 2", "ranks 2, 5-7". */
static void name_absent(struct mpi_group *g, int several)
{
	size_t used = 0, room = sizeof(g->absent);

	for (int r = 0; r < g->size && used < room; r++) {
		int first = r;

		while (r < g->size && !g->gone[r])
			r++;
		if (r == first)
			continue;
		used += (size_t)snprintf(g->absent + used, room - used, "%s%d", used ? ", " : several ? "ranks " : "rank ", first);
		if (r - first > 1 && used < room)
			used += (size_t)snprintf(g->absent + used, room - used, "-%d", r - 1);
	}
	if (used >= room)
		memcpy(g->absent + room - 4, "...", 4);
}

static const char *absent(void *ctx)
{
	struct mpi_group *g = ctx;
	MPI_Request request;
	double end;
	int heard;

	if (is_over() || g->gone[g->rank])
		return g->absent;
	end = MPI_Wtime() + 1;
	g->gone[g->rank] = 1;
	for (int r = 0; r < g->size; r++)
		if (r != g->rank && MPI_Isend(NULL, 0, MPI_BYTE, r, GONE, g->comm, &request) == MPI_SUCCESS)
			MPI_Request_free(&request);
	while ((heard = count_gone(g)) < g->size && MPI_Wtime() < end)
		sleep_briefly();
	name_absent(g, g->size - heard > 1);
	return g->absent;
}

/* Has another rank given up? Then this one waits in vain. Checked only now and then, since it is as
 * expensive as a look. */
static int look_for_gone(struct mpi_group *g)
{
	int first = 0;

	if (++g->looks % 64 || count_gone(g) == 0)
		return 0;
	while (!g->gone[first])
		first++;
	absent(g);
	snprintf(g->message, sizeof(g->message), "rank %d has given up%s%s", first,
		 g->absent[0] ? " waiting for " : "; its own message says why", g->absent);
	g->failed = 1;
	return VARVE_EPEER;
}

/* MPICH 4.0 compares unsigned numbers as signed ones. With the top bit flipped, the signed order is
 * the right one. */
static void flip(uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] ^= (uint64_t)1 << 63;
}

static int test(void *ctx, void *op)
{
	struct mpi_group *g = ctx;
	struct mpi_work *w = op;
	int rc = is_over() ? fail_plain(g, VARVE_EINVAL, "MPI_Finalize was called before varve_close") : test_all(g, w);

	if (rc == 0)
		rc = look_for_gone(g);
	if (rc == 0)
		return 0;
	flip(w->flipped, w->n_flipped);
	g->under_way = 0;
	drop(w);
	return rc;
}

/* ---- messages -------------------------------------------------------------------------------- */

static uint64_t pieces(uint64_t len)
{
	return len / vv_mpi_piece + (len % vv_mpi_piece != 0);
}

static int clip(uint64_t len)
{
	return (int)(len < vv_mpi_piece ? len : vv_mpi_piece);
}

static int receive(struct mpi_group *g, struct mpi_work *w, void *in, uint64_t len, int from)
{
	int error = MPI_SUCCESS;

	for (uint64_t at = 0; at < len && error == MPI_SUCCESS; at += vv_mpi_piece) {
		int n = clip(len - at);

		error = MPI_Irecv((char *)in + at, n, MPI_BYTE, from, g->tag, g->comm, next(w, n));
	}
	return error;
}

static int send(struct mpi_group *g, struct mpi_work *w, const void *out, uint64_t len, int to)
{
	int error = MPI_SUCCESS;

	for (uint64_t at = 0; at < len && error == MPI_SUCCESS; at += vv_mpi_piece)
		error = MPI_Isend((const char *)out + at, clip(len - at), MPI_BYTE, to, g->tag, g->comm, next(w, -1));
	return error;
}

static void copy(void *to, const void *from, uint64_t len)
{
	if (len)
		memcpy(to, from, len);
}

/* ---- the operations -------------------------------------------------------------------------- */

static int bcast(void *ctx, void *p, size_t len, uint32_t root, void **op)
{
	struct mpi_group *g = ctx;
	struct mpi_work *w;
	int error = MPI_SUCCESS, rc = begin(g, "MPI_Ibcast", pieces(len), &w);

	if (rc)
		return rc;
	for (size_t at = 0; at < len && error == MPI_SUCCESS; at += vv_mpi_piece)
		error = MPI_Ibcast((char *)p + at, clip(len - at), MPI_BYTE, (int)root, g->comm, next(w, -1));
	return begun(g, w, error, op);
}

static int allreduce(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op)
{
	struct mpi_group *g = ctx;
	MPI_Op by = how == VARVE_MIN ? MPI_MIN : how == VARVE_MAX ? MPI_MAX : MPI_SUM;
	size_t step = vv_mpi_piece / sizeof(*v) ? vv_mpi_piece / sizeof(*v) : 1;
	struct mpi_work *w;
	int error = MPI_SUCCESS, rc = begin(g, "MPI_Iallreduce", n / step + 1, &w);

	if (rc)
		return rc;
	w->flipped = v;
	w->n_flipped = how == VARVE_SUM ? 0 : n;
	flip(v, w->n_flipped);
	for (size_t at = 0; at < n && error == MPI_SUCCESS; at += step)
		error = MPI_Iallreduce(MPI_IN_PLACE, v + at, (int)(n - at < step ? n - at : step),
				       how == VARVE_SUM ? MPI_UINT64_T : MPI_INT64_T, by, g->comm, next(w, -1));
	return begun(g, w, error, op);
}

/* Part r of `to` goes to rank r and part r of `from` comes from rank r. Parts have len bytes each,
 * or to_len[r] and from_len[r]. With one part for all, every rank gets that part. Each rank begins
 * with its neighbour, so that not all send to rank 0 first. */
struct mpi_parts {
	const char *to;
	char *from;
	const uint64_t *to_len, *from_len;
	uint64_t len;
	int one_for_all;
};

static uint64_t to_len(const struct mpi_parts *p, int r)
{
	return p->to_len ? p->to_len[r] : p->len;
}

static uint64_t from_len(const struct mpi_parts *p, int r)
{
	return p->from_len ? p->from_len[r] : p->len;
}

static int post(struct mpi_group *g, struct mpi_work *w, const struct mpi_parts *p, uint64_t *to_at, uint64_t *from_at)
{
	int error = MPI_SUCCESS;

	for (int r = 0; r < g->size; r++) {
		to_at[r + 1] = to_at[r] + (p->one_for_all ? 0 : to_len(p, r));
		from_at[r + 1] = from_at[r] + from_len(p, r);
	}
	copy(p->from + from_at[g->rank], p->to + to_at[g->rank], from_len(p, g->rank));
	for (int i = 1; i < g->size && error == MPI_SUCCESS; i++) {
		int r = (g->rank + g->size - i) % g->size;

		error = receive(g, w, p->from + from_at[r], from_len(p, r), r);
	}
	for (int i = 1; i < g->size && error == MPI_SUCCESS; i++) {
		int r = (g->rank + i) % g->size;

		error = send(g, w, p->to + to_at[r], to_len(p, r), r);
	}
	return error;
}

static int exchange(struct mpi_group *g, const char *what, const struct mpi_parts *p, void **op)
{
	uint64_t *at, n = 0;
	struct mpi_work *w;
	int error, rc;

	for (int r = 0; r < g->size; r++)
		n += r == g->rank ? 0 : pieces(to_len(p, r)) + pieces(from_len(p, r));
	rc = begin(g, what, n, &w);
	if (rc)
		return rc;
	at = calloc(2 * ((size_t)g->size + 1), sizeof(*at));
	if (!at) {
		drop(w);
		return fail_plain(g, VARVE_ENOMEM, "out of memory for MPI requests");
	}
	error = post(g, w, p, at, at + g->size + 1);
	free(at);
	return begun(g, w, error, op);
}

/* All parts together are at most a piece: MPI's own operation handles them. */
static int is_small(const struct mpi_group *g, size_t len)
{
	return len <= vv_mpi_piece / (size_t)g->size;
}

static int allgather(void *ctx, const void *mine, void *all, size_t len, void **op)
{
	struct mpi_group *g = ctx;
	struct mpi_work *w;
	int rc, n = (int)len;

	if (!is_small(g, len))
		return exchange(g, "allgather by messages", &(struct mpi_parts){ mine, all, NULL, NULL, len, 1 }, op);
	rc = begin(g, "MPI_Iallgather", 1, &w);
	if (rc)
		return rc;
	return begun(g, w, MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, g->comm, next(w, -1)), op);
}

static int alltoall(void *ctx, const void *to, void *from, size_t len, void **op)
{
	struct mpi_group *g = ctx;
	struct mpi_work *w;
	int rc, n = (int)len;

	if (!is_small(g, len))
		return exchange(g, "alltoall by messages", &(struct mpi_parts){ to, from, NULL, NULL, len, 0 }, op);
	rc = begin(g, "MPI_Ialltoall", 1, &w);
	if (rc)
		return rc;
	return begun(g, w, MPI_Ialltoall(to, n, MPI_BYTE, from, n, MPI_BYTE, g->comm, next(w, -1)), op);
}

static int alltoallv(void *ctx, const void *to, const uint64_t *to_lens, void *from, const uint64_t *from_lens, void **op)
{
	return exchange(ctx, "alltoallv", &(struct mpi_parts){ to, from, to_lens, from_lens, 0, 0 }, op);
}

static int sendrecv(void *ctx, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from, void **op)
{
	struct mpi_group *g = ctx;
	int outward = to != VARVE_NOBODY && to != (uint32_t)g->rank;
	int inward = from != VARVE_NOBODY && from != (uint32_t)g->rank;
	struct mpi_work *w;
	int error = MPI_SUCCESS;
	int rc = begin(g, "sendrecv", (outward ? pieces(out_len) : 0) + (inward ? pieces(in_len) : 0), &w);

	if (rc)
		return rc;
	if (to == (uint32_t)g->rank)
		copy(in, out, out_len);
	if (inward)
		error = receive(g, w, in, in_len, (int)from);
	if (outward && error == MPI_SUCCESS)
		error = send(g, w, out, out_len, (int)to);
	return begun(g, w, error, op);
}

static const char *message(void *ctx)
{
	return ((struct mpi_group *)ctx)->message;
}

/* While an operation is in progress, freeing the communicator could wait for a rank that does not
 * come. */
static void close_group(void *ctx)
{
	struct mpi_group *g = ctx;

	if (!g->under_way && !g->failed && !is_over() && count_gone(g) == 0)
		MPI_Comm_free(&g->comm);
	free(g->gone);
	free(g);
}

/* ---- opening --------------------------------------------------------------------------------- */

#if defined(OPEN_MPI)
#define BUILT_WITH "Open MPI"
#elif defined(MPICH_VERSION)
#define BUILT_WITH "MPICH"
#else
#define BUILT_WITH ""
#endif

/* Libraries with the interface of MPICH have names of their own, such as Intel(R) MPI Library. */
static bool is_built_for(const char *version)
{
	if (strcmp(BUILT_WITH, "MPICH") == 0)
		return strstr(version, "MPICH") || strstr(version, "MVAPICH") || strstr(version, "Intel(R) MPI");
	return strstr(version, BUILT_WITH);
}

/* Handles of one MPI mean nothing to another one. The program's MPI is loaded first, and answers
 * this call. */
static int check_library(void)
{
	/* of any MPI: MPICH has MPI_MAX_LIBRARY_VERSION_STRING = 8192, Open MPI 256 */
	enum { LONGEST = 8192 };
	char version[LONGEST] = "", words[400];
	int len = 0;

	if (MPI_Get_library_version(version, &len) != MPI_SUCCESS || is_built_for(version))
		return 0;
	version[strcspn(version, "\n,")] = '\0';
	for (char *tab = version; (tab = strchr(tab, '\t'));)
		*tab = ' ';
	snprintf(words, sizeof(words), "varve_open_mpi: varve was built with " BUILT_WITH ", and the program runs with another MPI (%.100s); "
		 "build varve with the program's mpicc (cmake -DMPI_C_COMPILER=...)", version);
	return varve_fail(VARVE_EINVAL, words);
}

static int check(MPI_Comm comm)
{
	int yes = 0, rc = check_library();

	if (rc)
		return rc;
	MPI_Initialized(&yes);
	if (!yes)
		return varve_fail(VARVE_EINVAL, "varve_open_mpi: MPI is not initialised; call MPI_Init_thread or MPI_Init before");
	if (is_over())
		return varve_fail(VARVE_EINVAL, "varve_open_mpi: MPI_Finalize was called; open and close the session before");
	if (comm == MPI_COMM_NULL)
		return varve_fail(VARVE_EINVAL, "varve_open_mpi: MPI_COMM_NULL; ranks outside of a communicator do not open it");
	if (MPI_Comm_test_inter(comm, &yes) != MPI_SUCCESS)
		return varve_fail(VARVE_EINVAL, "varve_open_mpi: this is no communicator");
	if (yes)
		return varve_fail(VARVE_EINVAL, "varve_open_mpi: an intercommunicator; MPI_Intercomm_merge makes one group of the two");
	return 0;
}

static int fail_open(struct mpi_group *g, const char *what, int error)
{
	char words[sizeof(g->message) + 32];

	fail(g, what, error);
	snprintf(words, sizeof(words), "varve_open_mpi: %s", g->message);
	return varve_fail(VARVE_EPEER, words);
}

static int too_late(const struct mpi_group *g, double patience)
{
	char words[400];

	snprintf(words, sizeof(words), "varve_open_mpi: rank %d of %d waited %.3g s for the others: one has died, hangs, or did not call it "
		 "with this communicator; end the job and start it again, or if it was only late, raise the option `timeout`", g->rank,
		 g->size, patience);
	return varve_fail(VARVE_EPEER, words);
}

/* Waits until the request is done, or the patience is used up. As in comm.c, a long time between
 * two looks counts for little. */
static int await(MPI_Request *request, double *patience, int *done)
{
	double seen = MPI_Wtime(), begin = seen, now, gap;
	int error = MPI_SUCCESS;

	while (*patience > 0 && (error = MPI_Test(request, done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !*done) {
		now = MPI_Wtime();
		gap = now - seen;
		*patience -= gap < 0.1 ? gap : 0.1;
		seen = now;
		if (now - begin > 1e-3)
			sleep_briefly();
	}
	return error;
}

/* MPI keeps the group for good if the duplication does not end: it cannot be cancelled. */
static int duplicate(MPI_Comm comm, double patience, double *left, struct mpi_group **out)
{
	struct mpi_group *g = calloc(1, sizeof(*g));
	MPI_Request request;
	int error, done = 0;

	if (!g)
		goto no_memory;
	MPI_Comm_rank(comm, &g->rank);
	MPI_Comm_size(comm, &g->size);
	g->gone = calloc((size_t)g->size, 1);
	if (!g->gone)
		goto no_memory;
	error = MPI_Comm_idup(comm, &g->comm, &request);
	if (error == MPI_SUCCESS)
		error = await(&request, left, &done);
	if (error != MPI_SUCCESS)
		return fail_open(g, "MPI_Comm_idup", error);
	if (!done)
		return too_late(g, patience);
	MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_name(g->comm, "varve");
	*out = g;
	return 0;
no_memory:
	free(g);
	return varve_fail(VARVE_ENOMEM, "varve_open_mpi: out of memory");
}

/* One after the other: the other ranks detect a rank that fails here within their time limit. */
int vv_mpi_plug(MPI_Comm comm, double patience, struct varve_comm *out)
{
	struct mpi_group *g[2] = { NULL, NULL };
	int level = MPI_THREAD_SINGLE, rc = check(comm);
	double left = patience;

	for (int i = 0; rc == 0 && i < 2; i++)
		rc = duplicate(comm, patience, &left, &g[i]);
	if (rc)
		return rc;
	MPI_Query_thread(&level);
	*out = (struct varve_comm){
		.rank = (uint32_t)g[0]->rank,
		.size = (uint32_t)g[0]->size,
		.any_thread = level == MPI_THREAD_MULTIPLE,
		.ctx = g[0],
		.side = g[1],
		.bcast = bcast,
		.allreduce = allreduce,
		.allgather = allgather,
		.alltoall = alltoall,
		.alltoallv = alltoallv,
		.sendrecv = sendrecv,
		.test = test,
		.message = message,
		.absent = absent,
		.close = close_group,
	};
	return 0;
}

int varve_open_mpi(MPI_Comm comm, const char *store, const char *lineage, const char *options, varve **out)
{
	struct varve_comm plug;
	int rc;

	if (out)
		*out = NULL;
	rc = vv_mpi_plug(comm, varve_timeout(options), &plug);
	return rc ? rc : varve_open_comm(&plug, store, lineage, options, out);
}
