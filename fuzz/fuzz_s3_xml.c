/* The input as the answer of a server that is asked for XML. Whatever it is: an element ends after its children, texts have a bound, and what is found by
 * its path is the first text that was told of there; nothing is found in what is not XML to its end. */
#include "base/err.h"
#include "store/s3/s3_xml.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH = 2048, FIRST = 8 };

struct heard {
	char last[PATH];
	size_t n;     /* elements that ended */
	size_t stop;  /* at which of them to say no; 0: at none */
	size_t kept;
	char *path[FIRST], *text[FIRST]; /* texts at paths that were not heard before */
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static char *copy(const char *text)
{
	char *p = strdup(text);

	insist(p != NULL);
	return p;
}

static void keep(struct heard *h, const char *path, const char *text)
{
	if (h->kept == FIRST)
		return;
	for (size_t i = 0; i < h->kept; i++)
		if (strcmp(h->path[i], path) == 0)
			return;
	h->path[h->kept] = copy(path);
	h->text[h->kept++] = copy(text);
}

static int hear(void *ctx, const char *path, const char *text)
{
	struct heard *h = ctx;
	size_t n = strlen(path);

	insist(n && n < PATH && path[0] != '/' && path[n - 1] != '/' && !strstr(path, "//"));
	if (text) {
		insist(strlen(text) < VV_S3_XML_TEXT);
		keep(h, path, text);
	} else { /* the last of its children has just ended */
		insist(strncmp(h->last, path, n) == 0 && h->last[n] == '/' && !strchr(h->last + n + 1, '/'));
	}
	memcpy(h->last, path, n + 1);
	return ++h->n == h->stop ? VV_EBUSY : 0;
}

static void find(const uint8_t *data, size_t size, const struct heard *h, int is_xml)
{
	char text[VV_S3_XML_TEXT];

	for (size_t i = 0; i < h->kept; i++) {
		insist(vv_s3_xml_find(data, size, h->path[i], text, sizeof(text)) == is_xml);
		insist(!is_xml || strcmp(text, h->text[i]) == 0);
		free(h->path[i]);
		free(h->text[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heard h = { 0 }, half;
	int rc = vv_s3_xml_walk(data, size, hear, &h);

	insist(rc == 0 || rc == VV_EIO);
	if (rc == 0)
		insist(h.n && !strchr(h.last, '/')); /* the root ends last */
	half = (struct heard){ .stop = h.n / 2 + (h.n > 0), .kept = FIRST }; /* keeps none */
	if (half.stop)
		insist(vv_s3_xml_walk(data, size, hear, &half) == VV_EBUSY && half.n == half.stop);
	find(data, size, &h, rc == 0);
	return 0;
}
