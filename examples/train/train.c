/* Trains a small transformer, character by character, on the GPU or on the CPU. Kill it whenever you like and start it
 * again: it goes on from its last checkpoint, and every loss that it prints is the same, bit for bit.
 *
 *	nvcc -x cu --fmad=false -o train train.c $(pkg-config --cflags --libs varve)          on a GPU
 *	cc -O2 -ffp-contract=off -o train train.c $(pkg-config --cflags --libs varve) -lm     on the CPU
 *	./train --store ckpt --steps 300
 *
 * What varve needs is in attach(), and three lines of train(). The transformer is in transformer.h, and launch.h makes
 * one source of both. */
#include "transformer.h"
#include <varve/varve.h>

/* All that decides the next step, beside the weights and Adam's moments. */
struct progress {
	uint64_t step;
	uint64_t position; /* in the text */
	uint64_t rng;
	float beta1, beta2; /* the powers of Adam's decay rates */
};

struct settings {
	struct sizes size;
	int steps, every;
	const char *store, *lineage;
};

/* ---- varve -------------------------------------------------------------------------------------------------------- */

static void fail(void)
{
	fprintf(stderr, "train: %s\n", varve_last_error());
	exit(1);
}

/* Declares the state, and restores it if the lineage has an epoch. Weights and moments may lie on a GPU. */
static varve *attach(const struct settings *set, const struct transformer *m, struct progress *now)
{
	size_t n[] = { (size_t)m->parameters };
	varve *v = NULL;

	if (varve_open(set->store, set->lineage, NULL, &v) < 0 ||
	    varve_protect(v, "progress", now, sizeof(*now)) < 0 ||
	    varve_protect_array(v, "weights", m->weights, VARVE_BF16, 1, n) < 0 ||
	    varve_protect_array(v, "mean", m->mean, VARVE_F32, 1, n) < 0 ||
	    varve_protect_array(v, "variance", m->variance, VARVE_F32, 1, n) < 0 ||
	    varve_restart(v, VARVE_LATEST) < 0)
		fail();
	if (now->step)
		printf("goes on after step %d\n", (int)now->step);
	return v;
}

/* ---- training ----------------------------------------------------------------------------------------------------- */

static void next_batch(const struct transformer *m, const uint8_t *text, struct progress *now)
{
	uint64_t end = TEXT - (uint64_t)m->rows - 1;

	now->position %= end;
	copy(m->input, text + now->position, (size_t)m->rows);
	copy(m->target, text + now->position + 1, (size_t)m->rows);
	now->position += (uint64_t)m->rows;
}

static double mean_loss(const struct transformer *m)
{
	float *likelihood = (float *)malloc((size_t)m->rows * sizeof(float));
	double sum = 0;

	if (!likelihood)
		exit(1);
	copy(likelihood, m->likelihood, (size_t)m->rows * sizeof(float));
	for (int r = 0; r < m->rows; r++)
		sum -= log((double)likelihood[r]);
	free(likelihood);
	return sum / m->rows;
}

static double train_step(const struct transformer *m, const uint8_t *text, struct progress *now)
{
	next_batch(m, text, now);
	forward(m);
	backward(m);
	now->beta1 *= 0.9f;
	now->beta2 *= 0.99f;
	now->rng = random_bits(now->rng, 0);
	RUN(adam, m->parameters, m->weights, m->gradient, m->mean, m->variance, 0.003f, 1 / (1 - now->beta1),
	    1 / (1 - now->beta2), now->rng);
	now->step++;
	return mean_loss(m);
}

static void train(const struct settings *set, const struct transformer *m, const uint8_t *text)
{
	struct progress now = { 0, 0, 1, 1, 1 };
	varve *v;

	RUN(draw_weights, m->parameters, m->weights, 1 / sqrtf((float)m->size.width), now.rng);
	v = attach(set, m, &now);
	while (now.step < (uint64_t)set->steps) {
		double loss = train_step(m, text, &now);

		printf("step %4d  loss %.6f  %a\n", (int)now.step, loss, loss);
		if (now.step % (uint64_t)set->every == 0 || now.step == (uint64_t)set->steps)
			if (varve_checkpoint(v) < 0)
				fail();
	}
	if (varve_close(v) < 0) /* waits until the last checkpoint is durable */
		fail();
}

/* What the model writes after a few characters of the text. */
static void recite(const struct transformer *m, const uint8_t *text)
{
	uint8_t line[TEXT];
	float logits[CHARS];
	int n = 8;

	memcpy(line, text, (size_t)m->rows);
	for (; n < m->size.context; n++) {
		copy(m->input, line, (size_t)m->rows);
		forward(m);
		copy(logits, m->logits + (n - 1) * CHARS, sizeof(logits));
		line[n] = 0;
		for (int c = 1; c < CHARS; c++)
			if (logits[c] > logits[line[n]])
				line[n] = (uint8_t)c;
	}
	for (int i = 0; i < n; i++)
		putchar(ALPHABET[line[i]]);
	putchar('\n');
}

/* ---- the command line --------------------------------------------------------------------------------------------- */

static void usage(void)
{
	fputs("usage: train [--store STORE] [--lineage NAME] [--steps N] [--every N]\n"
	      "             [--layers N] [--width N] [--context N] [--batch N]\n"
	      "--every: steps from one checkpoint to the next\n"
	      "--width: a multiple of 16; --batch: sequences of --context characters, 4096 characters in all at most\n",
	      stderr);
	exit(2);
}

static bool number(const char *text, int least, int most, int *out)
{
	char *end;
	long n = strtol(text, &end, 10);

	*out = (int)n;
	return *text && !*end && n >= least && n <= most;
}

static bool set_one(struct settings *set, const char *name, const char *value)
{
	const struct {
		const char *name;
		int *out, least, most;
	} numbers[] = {
		{ "--steps", &set->steps, 1, 1000000 },      { "--every", &set->every, 1, 1000000 },
		{ "--layers", &set->size.layers, 1, 48 },    { "--width", &set->size.width, HEAD, 1024 },
		{ "--context", &set->size.context, 16, 4096 }, { "--batch", &set->size.batch, 1, 256 },
	};

	if (strcmp(name, "--store") == 0)
		return (set->store = value);
	if (strcmp(name, "--lineage") == 0)
		return (set->lineage = value);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (strcmp(name, numbers[i].name) == 0)
			return number(value, numbers[i].least, numbers[i].most, numbers[i].out);
	return false;
}

int main(int argc, char **argv)
{
	struct settings set = { { 2, 32, 32, 4 }, 300, 10, "ckpt", "train" };
	struct transformer m;
	static uint8_t text[TEXT];

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i += 2)
		if (!argv[i + 1] || !set_one(&set, argv[i], argv[i + 1]))
			usage();
	if (set.size.width % HEAD || set.size.batch * set.size.context > 4096)
		usage();
	draw_text(1, text);
	new_transformer(&m, set.size);
	train(&set, &m, text);
	recite(&m, text);
	return 0;
}
