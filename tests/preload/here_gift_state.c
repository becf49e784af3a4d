/* A program whose state is made of what the C library has allocated for it, and which checks that at every step.
 *
 *	here_gift_state STEPS [NAP_US] */
#define obstack_chunk_alloc malloc
#define obstack_chunk_free free
#include "expect.h"
#include <dirent.h>
#include <glob.h>
#include <obstack.h>
#include <regex.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { WORDS = 500 };

static struct state {
	long step;
	char *here, *word[WORDS];
	struct dirent **entry;
	int n_entries;
	glob_t found;
	regex_t number;
	void *tree;
	struct obstack strings;
	struct hsearch_data table;
} *st;

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void make(void)
{
	st = calloc(1, sizeof(*st));
	st->here = realpath(".", NULL);
	st->n_entries = scandir("/", &st->entry, NULL, alphasort);
	expect("begin", glob("/*", 0, NULL, &st->found) == 0 && regcomp(&st->number, "word ([0-9]+) of ([0-9]+)$", REG_EXTENDED) == 0 &&
	       hcreate_r(2 * WORDS, &st->table) && obstack_init(&st->strings));
}

/* A word by a stream, to be taken apart by scanf, known to the tree and the table. */
static char *new_word(void)
{
	char *text = NULL, *word = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	ENTRY *entry;

	fprintf(f, "the word %ld of %d", st->step, WORDS);
	fclose(f);
	expect("scan", sscanf(text, "the %m[^!]", &word) == 1);
	free(text);
	tsearch(word, &st->tree, by_text);
	hsearch_r((ENTRY){ .key = word, .data = word }, ENTER, &entry, &st->table);
	obstack_grow0(&st->strings, word, (int)strlen(word));
	obstack_finish(&st->strings);
	return word;
}

static void check_word(long i)
{
	char want[64], **node, *word = st->word[i];
	regmatch_t m[3];
	ENTRY *entry = NULL;

	snprintf(want, sizeof(want), "word %ld of %d", i, WORDS);
	node = tfind(want, &st->tree, by_text);
	expect("word", word && strcmp(word, want) == 0 && node && *node == word);
	expect("expression", regexec(&st->number, word, 3, m, 0) == 0 && atol(word + m[1].rm_so) == i);
	expect("table", hsearch_r((ENTRY){ .key = want }, FIND, &entry, &st->table) && entry->data == word);
}

static int live(long steps, useconds_t nap)
{
	make();
	for (; st->step < steps && st->step < WORDS && !bad; st->step++) {
		st->word[st->step] = new_word();
		for (long i = 0; i <= st->step; i += 1 + i / 8)
			check_word(i);
		expect("lists", st->n_entries > 2 && strcmp(st->entry[0]->d_name, ".") == 0 && st->found.gl_pathv[0][0] == '/' && st->here[0] == '/');
		if (varve_checkpoint_here() < 0)
			return 4;
		usleep(nap);
	}
	printf("%ld %s\n", st->step, bad ? "bad" : "good");
	return bad != 0;
}

int main(int argc, char **argv)
{
	return argc > 1 ? live(atol(argv[1]), argc > 2 ? (useconds_t)atol(argv[2]) : 0) : 2;
}
