/* A transformer that predicts the next character, its gradient by hand, and Adam. The names are those of the papers
 * (Vaswani et al. 2017, Kingma and Ba 2014). Matrices are stored by rows. A row of activations is one character of
 * one sequence of the batch. */
#ifndef TRANSFORMER_H
#define TRANSFORMER_H

#include "text.h"

enum { HEAD = 16 }; /* width of one attention head; its root divides the scores */

struct sizes {
	int layers, width, context, batch;
};

/* Where the matrices of a layer begin among the parameters. */
struct layer {
	size_t qkv, out, up, down;
};

struct transformer {
	struct sizes size;
	int rows, heads, parameters;
	size_t symbols, places, head; /* embeddings of characters and of positions, and the last matrix */
	bf16 *weights;
	float *gradient, *mean, *variance; /* Adam's moments */
	/* What the way back needs, for all layers. x: what flows through the layers. */
	float *x, *norm, *qkv, *attention, *mix, *hidden, *logits;
	/* The gradient of the loss by each of them, for one layer at a time. */
	float *dx, *dnorm, *dqkv, *dattention, *dmix, *dhidden;
	uint8_t *input, *target;
	float *likelihood; /* of the right characters */
};

/* ---- matrices ----------------------------------------------------------------------------------------------------- */

/* y = x w^T, plus `add` if there is one. x: rows x from, w: to x from. */
KERNEL void multiply(int n, float *y, const float *x, const bf16 *w, const float *add, int from, int to)
{
	EACH (i, n) {
		const float *row = x + (size_t)(i / to) * from;
		const bf16 *column = w + (size_t)(i % to) * from;
		float sum = add ? add[i] : 0;

		for (int k = 0; k < from; k++)
			sum += row[k] * from_bf16(column[k]);
		y[i] = sum;
	}
}

/* dx = dy w */
KERNEL void multiply_dx(int n, float *dx, const float *dy, const bf16 *w, int from, int to)
{
	EACH (i, n) {
		float sum = 0;

		for (int k = 0; k < to; k++)
			sum += dy[(size_t)(i / from) * to + k] * from_bf16(w[(size_t)k * from + i % from]);
		dx[i] = sum;
	}
}

/* dw = dy^T x */
KERNEL void multiply_dw(int n, float *dw, const float *dy, const float *x, int rows, int from, int to)
{
	EACH (i, n) {
		float sum = 0;

		for (int r = 0; r < rows; r++)
			sum += dy[(size_t)r * to + i / from] * x[(size_t)r * from + i % from];
		dw[i] = sum;
	}
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

KERNEL void embed(int n, float *x, const uint8_t *input, const bf16 *symbols, const bf16 *places, int width, int context)
{
	EACH (i, n) {
		int row = i / width, c = i % width;

		x[i] = from_bf16(symbols[input[row] * width + c]) + from_bf16(places[row % context * width + c]);
	}
}

KERNEL void embed_dsymbols(int n, float *d, const float *dx, const uint8_t *input, int rows, int width)
{
	EACH (i, n) {
		float sum = 0;

		for (int r = 0; r < rows; r++)
			sum += input[r] == i / width ? dx[r * width + i % width] : 0;
		d[i] = sum;
	}
}

KERNEL void embed_dplaces(int n, float *d, const float *dx, int rows, int context, int width)
{
	EACH (i, n) {
		float sum = 0;

		for (int r = i / width; r < rows; r += context)
			sum += dx[r * width + i % width];
		d[i] = sum;
	}
}

INLINE float root_mean_square(const float *x, int width)
{
	float sum = 0;

	for (int c = 0; c < width; c++)
		sum += x[c] * x[c];
	return sqrtf(sum / (float)width + 1e-5f);
}

KERNEL void normalize(int n, float *y, const float *x, int width)
{
	EACH (r, n) {
		float rms = root_mean_square(x + r * width, width);

		for (int c = 0; c < width; c++)
			y[r * width + c] = x[r * width + c] / rms;
	}
}

/* dx += the gradient by x of normalize. */
KERNEL void normalize_dx(int n, float *dx, const float *dy, const float *x, const float *y, int width)
{
	EACH (r, n) {
		float rms = root_mean_square(x + r * width, width), dot = 0;

		for (int c = 0; c < width; c++)
			dot += dy[r * width + c] * y[r * width + c];
		for (int c = 0; c < width; c++)
			dx[r * width + c] += (dy[r * width + c] - y[r * width + c] * dot / (float)width) / rms;
	}
}

KERNEL void fill(int n, float *y, float value)
{
	EACH (i, n)
		y[i] = value;
}

KERNEL void rectify(int n, float *y)
{
	EACH (i, n)
		y[i] = y[i] > 0 ? y[i] : 0;
}

KERNEL void rectify_dx(int n, float *dy, const float *y)
{
	EACH (i, n)
		dy[i] = y[i] > 0 ? dy[i] : 0;
}

INLINE void softmax(float *p, int n)
{
	float most = p[0], sum = 0;

	for (int i = 1; i < n; i++)
		most = p[i] > most ? p[i] : most;
	for (int i = 0; i < n; i++)
		sum += p[i] = exp_of(p[i] - most);
	for (int i = 0; i < n; i++)
		p[i] /= sum;
}

/* Makes the logits their own gradient of the mean loss. */
KERNEL void compare(int n, float *logits, const uint8_t *target, float *likelihood)
{
	EACH (r, n) {
		float *p = logits + r * CHARS;

		softmax(p, CHARS);
		likelihood[r] = p[target[r]];
		p[target[r]] -= 1;
		for (int c = 0; c < CHARS; c++)
			p[c] /= (float)n;
	}
}

/* ---- attention ---------------------------------------------------------------------------------------------------- */

enum { Q, K, V };

/* The query, key or value of one row and head. */
INLINE size_t part(int row, int which, int head, int heads)
{
	return ((size_t)(row * 3 + which) * (size_t)heads + (size_t)head) * HEAD;
}

INLINE float dot(const float *a, const float *b)
{
	float sum = 0;

	for (int c = 0; c < HEAD; c++)
		sum += a[c] * b[c];
	return sum;
}

/* i: a row and a head. a: the share of each earlier row of the sequence. */
KERNEL void attend(int n, float *mix, float *attention, const float *qkv, int heads, int context)
{
	EACH (i, n) {
		int row = i / heads, head = i % heads, first = row / context * context, rows = row - first + 1;
		float *a = attention + (size_t)i * context, *out = mix + (size_t)i * HEAD;

		for (int t = 0; t < rows; t++)
			a[t] = dot(qkv + part(row, Q, head, heads), qkv + part(first + t, K, head, heads)) / sqrtf(HEAD);
		softmax(a, rows);
		for (int c = 0; c < HEAD; c++) {
			out[c] = 0;
			for (int t = 0; t < rows; t++)
				out[c] += a[t] * qkv[part(first + t, V, head, heads) + c];
		}
	}
}

/* By the scores and the query of one row. */
KERNEL void attend_dq(int n, float *dqkv, float *dattention, const float *dmix, const float *attention, const float *qkv,
		      int heads, int context)
{
	EACH (i, n) {
		int row = i / heads, head = i % heads, first = row / context * context, rows = row - first + 1;
		const float *a = attention + (size_t)i * context;
		float *da = dattention + (size_t)i * context, *dq = dqkv + part(row, Q, head, heads), sum = 0;

		for (int t = 0; t < rows; t++) {
			da[t] = dot(dmix + (size_t)i * HEAD, qkv + part(first + t, V, head, heads));
			sum += a[t] * da[t];
		}
		for (int t = 0; t < rows; t++)
			da[t] = a[t] * (da[t] - sum) / sqrtf(HEAD);
		for (int c = 0; c < HEAD; c++) {
			dq[c] = 0;
			for (int t = 0; t < rows; t++)
				dq[c] += da[t] * qkv[part(first + t, K, head, heads) + c];
		}
	}
}

/* By the key and the value of one row, which the later rows have read. */
KERNEL void attend_dkv(int n, float *dqkv, const float *dattention, const float *dmix, const float *attention,
		       const float *qkv, int heads, int context)
{
	EACH (i, n) {
		int row = i / heads, head = i % heads, t = row % context, end = row - t + context;
		float *dk = dqkv + part(row, K, head, heads), *dv = dqkv + part(row, V, head, heads);

		for (int c = 0; c < HEAD; c++) {
			dk[c] = dv[c] = 0;
			for (int later = row; later < end; later++) {
				size_t j = (size_t)(later * heads + head);

				dk[c] += dattention[j * context + t] * qkv[part(later, Q, head, heads) + c];
				dv[c] += attention[j * context + t] * dmix[j * HEAD + c];
			}
		}
	}
}

/* ---- the model ---------------------------------------------------------------------------------------------------- */

static inline struct layer layer_at(const struct transformer *m, int l)
{
	size_t square = (size_t)m->size.width * (size_t)m->size.width;
	struct layer at;

	at.qkv = m->head + (size_t)(CHARS * m->size.width) + (size_t)l * 12 * square;
	at.out = at.qkv + 3 * square;
	at.up = at.out + square;
	at.down = at.up + 4 * square;
	return at;
}

static inline float *floats(size_t n, int each)
{
	return (float *)new_array(n, (size_t)each * sizeof(float));
}

static inline void new_transformer(struct transformer *m, struct sizes size)
{
	size_t layers = (size_t)size.layers, rows = (size_t)(size.batch * size.context);

	memset(m, 0, sizeof(*m));
	m->size = size;
	m->rows = (int)rows;
	m->heads = size.width / HEAD;
	m->places = (size_t)(CHARS * size.width);
	m->head = m->places + (size_t)(size.context * size.width);
	m->parameters = (int)layer_at(m, size.layers).qkv;
	m->weights = (bf16 *)new_array((size_t)m->parameters, sizeof(bf16));
	m->gradient = floats(1, m->parameters);
	m->mean = floats(1, m->parameters);
	m->variance = floats(1, m->parameters);
	m->x = floats((2 * layers + 1) * rows, size.width);
	m->norm = floats((2 * layers + 1) * rows, size.width);
	m->qkv = floats(layers * rows, 3 * size.width);
	m->attention = floats(layers * rows, m->heads * size.context);
	m->mix = floats(layers * rows, size.width);
	m->hidden = floats(layers * rows, 4 * size.width);
	m->logits = floats(rows, CHARS);
	m->dx = floats(rows, size.width);
	m->dnorm = floats(rows, size.width);
	m->dqkv = floats(rows, 3 * size.width);
	m->dattention = floats(rows, m->heads * size.context);
	m->dmix = floats(rows, size.width);
	m->dhidden = floats(rows, 4 * size.width);
	m->likelihood = floats(rows, 1);
	m->input = (uint8_t *)new_array(rows, 1);
	m->target = (uint8_t *)new_array(rows, 1);
}

static inline void forward(const struct transformer *m)
{
	int width = m->size.width, rows = m->rows, all = rows * width;
	float *x = m->x, *norm = m->norm;

	RUN(embed, all, x, m->input, m->weights + m->symbols, m->weights + m->places, width, m->size.context);
	for (int l = 0; l < m->size.layers; l++, x += 2 * all, norm += 2 * all) {
		struct layer w = layer_at(m, l);
		float *qkv = m->qkv + (size_t)l * 3 * all, *mix = m->mix + (size_t)l * all, *hidden = m->hidden + (size_t)l * 4 * all;
		float *attention = m->attention + (size_t)l * rows * m->heads * m->size.context;

		RUN(normalize, rows, norm, x, width);
		RUN(multiply, 3 * all, qkv, norm, m->weights + w.qkv, NULL, width, 3 * width);
		RUN(attend, rows * m->heads, mix, attention, qkv, m->heads, m->size.context);
		RUN(multiply, all, x + all, mix, m->weights + w.out, x, width, width);
		RUN(normalize, rows, norm + all, x + all, width);
		RUN(multiply, 4 * all, hidden, norm + all, m->weights + w.up, NULL, width, 4 * width);
		RUN(rectify, 4 * all, hidden);
		RUN(multiply, all, x + 2 * all, hidden, m->weights + w.down, x + all, 4 * width, width);
	}
	RUN(normalize, rows, norm, x, width);
	RUN(multiply, rows * CHARS, m->logits, norm, m->weights + m->head, NULL, width, CHARS);
}

/* The gradients of one matrix, by what it was multiplied with and by itself. */
static inline void back(const struct transformer *m, float *dx, const float *dy, const float *x, size_t w, int from, int to)
{
	RUN(multiply_dw, from * to, m->gradient + w, dy, x, m->rows, from, to);
	RUN(multiply_dx, m->rows * from, dx, dy, m->weights + w, from, to);
}

static inline void backward_layer(const struct transformer *m, int l)
{
	int width = m->size.width, rows = m->rows, all = rows * width;
	struct layer w = layer_at(m, l);
	const float *x = m->x + (size_t)l * 2 * all, *norm = m->norm + (size_t)l * 2 * all, *qkv = m->qkv + (size_t)l * 3 * all;
	const float *mix = m->mix + (size_t)l * all, *hidden = m->hidden + (size_t)l * 4 * all;
	const float *attention = m->attention + (size_t)l * rows * m->heads * m->size.context;

	back(m, m->dhidden, m->dx, hidden, w.down, 4 * width, width);
	RUN(rectify_dx, 4 * all, m->dhidden, hidden);
	back(m, m->dnorm, m->dhidden, norm + all, w.up, width, 4 * width);
	RUN(normalize_dx, rows, m->dx, m->dnorm, x + all, norm + all, width);
	back(m, m->dmix, m->dx, mix, w.out, width, width);
	RUN(attend_dq, rows * m->heads, m->dqkv, m->dattention, m->dmix, attention, qkv, m->heads, m->size.context);
	RUN(attend_dkv, rows * m->heads, m->dqkv, m->dattention, m->dmix, attention, qkv, m->heads, m->size.context);
	back(m, m->dnorm, m->dqkv, norm, w.qkv, width, 3 * width);
	RUN(normalize_dx, rows, m->dx, m->dnorm, x, norm, width);
}

static inline void backward(const struct transformer *m)
{
	int width = m->size.width, rows = m->rows, all = rows * width;
	const float *x = m->x + (size_t)m->size.layers * 2 * all, *norm = m->norm + (size_t)m->size.layers * 2 * all;

	RUN(compare, rows, m->logits, m->target, m->likelihood);
	back(m, m->dnorm, m->logits, norm, m->head, width, CHARS);
	RUN(fill, all, m->dx, 0.0f);
	RUN(normalize_dx, rows, m->dx, m->dnorm, x, norm, width);
	for (int l = m->size.layers; l-- > 0;)
		backward_layer(m, l);
	RUN(embed_dsymbols, CHARS * width, m->gradient + m->symbols, m->dx, m->input, rows, width);
	RUN(embed_dplaces, m->size.context * width, m->gradient + m->places, m->dx, rows, m->size.context, width);
}

/* ---- Adam --------------------------------------------------------------------------------------------------------- */

/* Moments are floats, weights bf16: a weight is rounded up or down at random. */
KERNEL void adam(int n, bf16 *weights, const float *gradient, float *mean, float *variance, float rate, float mean_scale,
		 float variance_scale, uint64_t rng)
{
	EACH (i, n) {
		float g = gradient[i], step;

		mean[i] = 0.9f * mean[i] + 0.1f * g;
		variance[i] = 0.99f * variance[i] + 0.01f * g * g;
		step = rate * mean[i] * mean_scale / (sqrtf(variance[i] * variance_scale) + 1e-8f);
		weights[i] = to_bf16(from_bf16(weights[i]) - step, (uint32_t)(random_bits(rng, (uint64_t)i) >> 48));
	}
}

KERNEL void draw_weights(int n, bf16 *weights, float scale, uint64_t seed)
{
	EACH (i, n)
		weights[i] = to_bf16(((float)(random_bits(seed, (uint64_t)i) >> 40) / (1 << 23) - 1) * scale, 0x8000);
}

#endif
