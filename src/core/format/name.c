#include "core/format/name.h"
#include "base/err.h"
#include "core/format/run.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char fine[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

int vv_name_check_lineage(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	if (n < 1 || n > VV_NAME_LINEAGE_MAX)
		return vv_err_set(VV_EINVAL, "lineage '%.80s': a name has 1 to %d characters", s ? s : "",
				  VV_NAME_LINEAGE_MAX);
	if (s[0] == '.' || strspn(s, fine) != n)
		return vv_err_set(VV_EINVAL,
				  "lineage '%s': a name has letters, digits, '.', '_' and '-' only, and no '.' in front", s);
	return 0;
}

static bool is_label(const char *s, size_t n)
{
	return n >= 1 && n <= VV_NAME_LABEL_MAX && strspn(s, fine) == n && s[0] != '.' && s[0] != '-' && strspn(s, "0123456789") < n &&
	       strcmp(s, "latest") != 0 && !strstr(s, "..");
}

int vv_name_check_label(const char *s)
{
	if (s && is_label(s, strlen(s)))
		return 0;
	return vv_err_set(VV_EINVAL,
			  "label '%.80s': a label has 1 to %d letters, digits, '.', '_' and '-', no '.' or '-' in front, no '..', and is neither a number nor 'latest'",
			  s ? s : "", VV_NAME_LABEL_MAX);
}

void vv_name_record(char out[VV_NAME_MAX], const char *lineage)
{
	snprintf(out, VV_NAME_MAX, "%s/lineage", lineage);
}

void vv_name_lock(char out[VV_NAME_MAX], const char *lineage)
{
	snprintf(out, VV_NAME_MAX, "%s/lock", lineage);
}

void vv_name_ended(char out[VV_NAME_MAX], const char *lineage)
{
	snprintf(out, VV_NAME_MAX, "%s/ended", lineage);
}

void vv_name_verified(char out[VV_NAME_MAX], const char *lineage)
{
	snprintf(out, VV_NAME_MAX, "%s/verified", lineage);
}

void vv_name_index(char out[VV_NAME_MAX], const char *lineage, uint32_t rank)
{
	snprintf(out, VV_NAME_MAX, "%s/index.r%" PRIu32, lineage, rank);
}

void vv_name_folder(char out[VV_NAME_MAX], const char *lineage, uint64_t folder)
{
	snprintf(out, VV_NAME_MAX, "%s/%08" PRIu64, lineage, folder);
}

void vv_name_commit(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch)
{
	snprintf(out, VV_NAME_MAX, "%s/%08" PRIu64 "/%010" PRIu64 ".commit", lineage,
		 epoch / VV_NAME_EPOCHS_PER_FOLDER, epoch);
}

void vv_name_layer(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, uint32_t rank)
{
	snprintf(out, VV_NAME_MAX, "%s/%08" PRIu64 "/%010" PRIu64 ".r%" PRIu32 ".layer", lineage,
		 epoch / VV_NAME_EPOCHS_PER_FOLDER, epoch, rank);
}

void vv_name_bundle(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, uint32_t first, uint32_t last)
{
	snprintf(out, VV_NAME_MAX, "%s/%08" PRIu64 "/%010" PRIu64 ".r%" PRIu32 "-%" PRIu32 ".bundle", lineage,
		 epoch / VV_NAME_EPOCHS_PER_FOLDER, epoch, first, last);
}

void vv_name_parity(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, uint32_t rank, uint32_t ranks)
{
	snprintf(out, VV_NAME_MAX, "%s/%08" PRIu64 "/%010" PRIu64 ".r%" PRIu32 "-of-%" PRIu32 ".parity", lineage,
		 epoch / VV_NAME_EPOCHS_PER_FOLDER, epoch, rank, ranks);
}

void vv_name_label(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, const char *label)
{
	snprintf(out, VV_NAME_MAX, "%s/%08" PRIu64 "/%010" PRIu64 ".%s.label", lineage, epoch / VV_NAME_EPOCHS_PER_FOLDER, epoch, label);
}

/* Exactly `width` digits (or for width 0 a plain number of up to 8 digits); *s moves past them. */
static int64_t digits(const char **s, size_t width)
{
	size_t n = strspn(*s, "0123456789");
	int64_t v;

	if (width ? n != width : n < 1 || n > 8 || (n > 1 && **s == '0'))
		return -1;
	v = (int64_t)strtoull(*s, NULL, 10);
	*s += n;
	return v;
}

enum vv_name_kind vv_name_parse(const char *s, uint64_t *epoch, uint32_t *rank)
{
	int64_t e = digits(&s, 10), r;

	if (e < 1)
		return VV_NAME_OTHER;
	*epoch = (uint64_t)e;
	*rank = 0;
	if (strcmp(s, ".commit") == 0)
		return VV_NAME_IS_COMMIT;
	if (strncmp(s, ".r", 2) != 0)
		return VV_NAME_OTHER;
	s += 2;
	r = digits(&s, 0);
	if (r < 0 || r >= VV_MAX_RANKS || strcmp(s, ".layer") != 0)
		return VV_NAME_OTHER;
	*rank = (uint32_t)r;
	return VV_NAME_IS_LAYER;
}

bool vv_name_parse_bundle(const char *s, uint64_t *epoch, uint32_t *first, uint32_t *last)
{
	int64_t e = digits(&s, 10), from, to;

	if (e < 1 || strncmp(s, ".r", 2) != 0)
		return false;
	s += 2;
	from = digits(&s, 0);
	if (from < 0 || *s++ != '-')
		return false;
	to = digits(&s, 0);
	if (to < from || to >= VV_MAX_RANKS || strcmp(s, ".bundle") != 0)
		return false;
	*epoch = (uint64_t)e;
	*first = (uint32_t)from;
	*last = (uint32_t)to;
	return true;
}

bool vv_name_parse_parity(const char *s, uint64_t *epoch, uint32_t *rank, uint32_t *ranks)
{
	int64_t e = digits(&s, 10), r, n;

	if (e < 1 || strncmp(s, ".r", 2) != 0)
		return false;
	s += 2;
	r = digits(&s, 0);
	if (r < 0 || strncmp(s, "-of-", 4) != 0)
		return false;
	s += 4;
	n = digits(&s, 0);
	if (n <= r || n > VV_MAX_RANKS || strcmp(s, ".parity") != 0)
		return false;
	*epoch = (uint64_t)e;
	*rank = (uint32_t)r;
	*ranks = (uint32_t)n;
	return true;
}

bool vv_name_parse_label(const char *s, uint64_t *epoch, char label[VV_NAME_LABEL_MAX + 1])
{
	static const char end[] = ".label";
	int64_t e = digits(&s, 10);
	size_t n = strlen(s), tail = sizeof(end) - 1;

	if (e < 1 || s[0] != '.' || n < 1 + tail + 1 || n > 1 + VV_NAME_LABEL_MAX + tail || strcmp(s + n - tail, end) != 0)
		return false;
	n -= 1 + tail;
	memcpy(label, s + 1, n);
	label[n] = '\0';
	*epoch = (uint64_t)e;
	return is_label(label, n);
}

int64_t vv_name_parse_folder(const char *s)
{
	int64_t v = digits(&s, 8);

	return *s ? -1 : v;
}
