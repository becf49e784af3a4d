#include "image/criu/tree_names.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/exchange.h"
#include "image/process/process_tree.h"
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MOST = 1 << 24 }; /* of a rank's message: there are no more than 2^22 processes */

/* ---- the trees of each rank ------------------------------------------------------------------ */

/* The message of a rank, in words of 64 bits: its pid namespace, its own number and the number of
 * its trees. Each tree follows with its length before it. */
enum { SPACE, SELF, TREES, FIRST };

static uint64_t number_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static void put_word(struct vv_buf *b, uint64_t word)
{
	vv_buf_add(b, &word, sizeof(word));
}

static int write_trees(const pid_t *root, size_t n, struct vv_buf *b)
{
	int rc = 0;

	put_word(b, number_space());
	put_word(b, (uint64_t)getpid());
	put_word(b, n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct vv_process_tree t = { 0 };

		rc = vv_process_tree_list(root[i], &t);
		put_word(b, t.n);
		for (size_t k = 0; k < t.n; k++)
			put_word(b, (uint64_t)t.pid[k]);
		vv_process_tree_fini(&t);
	}
	return rc ? rc : vv_buf_check(b);
}

struct tree_message { /* of a rank */
	const uint64_t *word;
	size_t n;
	uint32_t rank;
	bool own;
};

static int refuse_message(const struct tree_message *t)
{
	return vv_err_set(VV_EPEER, "rank %u tells of processes what cannot be", t->rank);
}

/* Checks whether this root, that of our tree number `mine`, is in another tree of the rank. */
static int look_for(const struct tree_message *t, pid_t root, size_t mine)
{
	size_t at = FIRST;

	for (uint64_t i = 0; i < t->word[TREES]; i++) {
		uint64_t len = at < t->n ? t->word[at] : 0;

		if (len < 1 || len > t->n - at - 1)
			return refuse_message(t);
		at++;
		for (size_t k = 0; k < len && !(t->own && i == mine); k++) {
			if (t->word[at + k] != (uint64_t)root)
				continue;
			return k == 0 ? vv_err_set(VV_EINVAL, "process %d is to be saved twice", (int)root)
				      : vv_err_set(VV_EINVAL, "process %d is one of those below process %" PRIu64 ", which are saved with it: name one of the two",
						   (int)root, t->word[at]);
		}
		at += (size_t)len;
	}
	return at == t->n ? 0 : refuse_message(t);
}

static int check_rank(const struct tree_message *t, const struct tree_message *mine)
{
	size_t at = FIRST;
	int rc = t->n < FIRST ? refuse_message(t) : 0;

	if (rc || t->word[SPACE] != mine->word[SPACE])
		return rc;
	for (size_t i = 0; rc == 0 && i < mine->word[TREES]; i++) {
		size_t len = (size_t)mine->word[at++];

		rc = look_for(t, (pid_t)mine->word[at], i);
		for (size_t k = 0; rc == 0 && k < len; k++)
			if (mine->word[at + k] == t->word[SELF])
				rc = vv_err_set(VV_EINVAL, "process %d is above the command of rank %u, which cannot save itself", (int)mine->word[at],
						t->rank);
		at += len;
	}
	return rc;
}

/* The process numbers of another host are not compared. */
static int check_all(const struct vv_group *g, const struct vv_exchange *m, const struct tree_message *mine, struct vv_tree_names_place *out)
{
	int rc = 0;

	for (uint32_t r = 0; rc == 0 && r < g->size; r++) {
		struct tree_message t = { (const uint64_t *)(const void *)vv_exchange_from(m, g, r), (size_t)(m->in_len[r] / sizeof(uint64_t)), r, r == g->rank };

		if (m->in_len[r] % sizeof(uint64_t) || t.n < FIRST || t.word[TREES] > t.n)
			return refuse_message(&t);
		if (g->host[r] == g->host[g->rank])
			rc = check_rank(&t, mine);
		out->first += r < g->rank ? t.word[TREES] : 0;
		out->all += t.word[TREES];
	}
	return rc;
}

int vv_tree_names_agree(struct varve *v, int rc, const pid_t *root, size_t n, struct vv_tree_names_place *out)
{
	struct vv_group *g = v->ctx.group;
	struct vv_buf b = { 0 };
	struct vv_exchange m = { 0 };
	struct tree_message mine;

	*out = (struct vv_tree_names_place){ 0 };
	if (rc == 0)
		rc = write_trees(root, n, &b);
	mine = (struct tree_message){ (const uint64_t *)(const void *)b.p, b.n / sizeof(uint64_t), v->ctx.rank, true };
	if (!g) {
		out->all = n;
		rc = rc ? rc : check_rank(&mine, &mine);
	} else {
		rc = vv_exchange_gather(&m, g, rc, b.p, b.n, WORDS_MOST * sizeof(uint64_t));
		if (rc == 0)
			rc = vv_group_agree(g, g->comm, check_all(g, &m, &mine, out));
		vv_exchange_free(&m, g);
	}
	vv_buf_fini(&b);
	return rc;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct vv_tree_names_name {
	const char *from; /* equal pointers mean the same file */
	char *to;
};

static int rename_part(struct vv_tree_names_input *f, struct vv_stream_input_part *part)
{
	size_t i = f->n_names;

	/* The requested names are few, or the last ones. */
	while (i > 0 && f->name[i - 1].from != part->name)
		i--;
	if (i == 0) {
		char *name = vv_mem_printf("%" PRIu64 "/%s", f->first + f->at, part->name);

		if (!name || vv_mem_room(&f->name, f->n_names, &f->names_cap, sizeof(*f->name)) < 0) {
			vv_mem_free(name);
			return VV_ENOMEM;
		}
		f->name[f->n_names++] = (struct vv_tree_names_name){ part->name, name };
		i = f->n_names;
	}
	part->name = f->name[i - 1].to;
	return VV_STREAM_INPUT_PART;
}

static int next(void *arg, struct vv_stream_input_part *out)
{
	struct vv_tree_names_input *f = arg;

	for (; f->at < f->n; f->at++) {
		int rc = f->from[f->at]->next(f->from[f->at]->arg, out);

		if (rc)
			return rc == VV_STREAM_INPUT_PART ? rename_part(f, out) : rc;
	}
	return VV_STREAM_INPUT_END;
}

const struct vv_stream_input *vv_tree_names_input(struct vv_tree_names_input *f, const struct vv_stream_input *const *from, size_t n, const struct vv_tree_names_place *place)
{
	*f = (struct vv_tree_names_input){ .stream_input = *from[0], .from = from, .n = n, .first = place->first };
	f->stream_input.arg = f;
	f->stream_input.next = next;
	for (size_t i = 1; i < n; i++)
		f->stream_input.expected += from[i]->expected;
	return place->all > 1 ? &f->stream_input : from[0];
}

void vv_tree_names_input_fini(struct vv_tree_names_input *f)
{
	for (size_t i = 0; i < f->n_names; i++)
		vv_mem_free(f->name[i].to);
	vv_mem_free(f->name);
	*f = (struct vv_tree_names_input){ 0 };
}
