/* Records: structs with named fields come back byte for byte, readers list their fields and read single structs, and other fields
 * are refused at a restart. Bad declarations change nothing. */
#include "support/answer.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve_read.h>

enum { N = 5000 };

struct particle {
	double x[3];
	float mass;
	int32_t id;
	char kind;
};

static const struct varve_field fields[] = {
	VARVE_FIELD(struct particle, id, VARVE_I32),
	VARVE_FIELD(struct particle, x, VARVE_F64),
	VARVE_FIELD(struct particle, mass, VARVE_F32),
	VARVE_FIELD(struct particle, kind, VARVE_U8),
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static struct particle p[N], was[N];

static void fill(int epoch)
{
	memset(p, 0xa5, sizeof(p)); /* the bytes between members, too */
	for (int i = 0; i < N; i++)
		p[i] = (struct particle){ { i, i * 0.5, epoch }, (float)i, i, (char)('a' + i % 26) };
}

static int declare(varve *v)
{
	return varve_protect_records(v, "particles", p, N, sizeof(p[0]), fields, FIELDS);
}

static void check_epochs(void)
{
	varve *v = NULL;

	ok(varve_open("mem:records", "r", "log=error", &v));
	ok(declare(v));
	for (int e = 1; e <= 3; e++) {
		fill(e);
		ok(settle_checkpoint(v));
	}
	memcpy(was, p, sizeof(p));
	memset(p, 0, sizeof(p));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(memcmp(p, was, sizeof(p)) == 0);
	ok(varve_close(v));
}

static void check_reader(void)
{
	const struct varve_stored_region *const *list;
	const uint64_t start = 77, count = 2;
	struct particle two[2];
	varve_reader *r = NULL;
	size_t n;

	ok(varve_reader_open("mem:records", "r", "log=error", &r));
	for (int again = 0; again < 2; again++) {
		ok(varve_reader_regions(r, VARVE_LATEST, 0, &list, &n));
		CHECK_EQ(n, 1);
		CHECK_EQ(list[0]->type, VARVE_RECORD);
		CHECK_EQ(list[0]->element, sizeof(p[0]));
		CHECK_EQ(list[0]->ndim, 1);
		CHECK_EQ(list[0]->shape[0], N);
		CHECK_EQ(list[0]->n_fields, FIELDS);
		CHECK_STR(list[0]->field[0].name, "x");
		CHECK_EQ(list[0]->field[0].bytes, 24);
		CHECK_STR(list[0]->field[2].name, "id");
		CHECK_EQ(list[0]->field[2].type, VARVE_I32);
		CHECK_EQ(list[0]->field[2].offset, offsetof(struct particle, id));
	}
	ok(varve_reader_read_part(r, 2, 0, "particles", &start, &count, two));
	CHECK(two[0].id == 77 && two[1].id == 78 && two[1].x[2] == 2);
	ok(varve_reader_close(r));
}

static void check_mismatch(void)
{
	struct varve_field other[FIELDS];
	struct varve_region_info info;
	varve *v = NULL;

	memcpy(other, fields, sizeof(fields));
	other[0].type = VARVE_U32;
	ok(varve_open("mem:records", "r", "log=error", &v));
	ok(varve_region(v, VARVE_LATEST, "particles", &info));
	CHECK(info.type == VARVE_RECORD && info.ndim == 1 && info.shape[0] == N && info.bytes == sizeof(p));
	ok(varve_protect_records(v, "particles", p, N, sizeof(p[0]), other, FIELDS));
	FAILS(varve_restart(v, 3), VARVE_EMISMATCH, "'particles': the fields");
	ok(varve_protect_array(v, "particles", p, VARVE_F64, 1, (size_t[]){ sizeof(p) / 8 }));
	FAILS(varve_restart(v, 3), VARVE_EMISMATCH, "'particles' is declared as f64");
	ok(varve_protect(v, "particles", p, sizeof(p))); /* bytes agree with everything */
	CHECK_EQ(varve_restart(v, 3), 1);
	CHECK(memcmp(p, was, sizeof(p)) == 0);
	ok(varve_close(v));
}

static void check_refused(void)
{
	struct varve_field f = fields[0];
	varve *v = NULL;
	char name[70];

	memset(name, 'n', 69);
	name[69] = 0;
	ok(varve_open("mem:records", "bad", "log=error", &v));
	ok(declare(v));
	FAILS(varve_protect_records(v, NULL, p, N, sizeof(p[0]), fields, FIELDS), VARVE_EINVAL, "name");
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), NULL, 1), VARVE_EINVAL, "no fields");
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), fields, 0), VARVE_EINVAL, "limits");
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), fields, SIZE_MAX), VARVE_EINVAL, "");
	FAILS(varve_protect_records(v, "q", p, SIZE_MAX / 2, sizeof(p[0]), fields, FIELDS), VARVE_EINVAL, "overflow");
	FAILS(varve_protect_records(v, "q", NULL, N, sizeof(p[0]), fields, FIELDS), VARVE_EINVAL, "no memory");
	FAILS(varve_protect_records(v, "q", p, N, 8, fields, FIELDS), VARVE_EINVAL, "ends after");
	FAILS(varve_protect_records(NULL, "q", p, N, sizeof(p[0]), fields, FIELDS), VARVE_EINVAL, "session");
	f.name = name;
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), &f, 1), VARVE_EINVAL, "69 characters");
	f = (struct varve_field){ NULL, VARVE_I32, 0, 4 };
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), &f, 1), VARVE_EINVAL, "name");
	f = (struct varve_field){ "a", VARVE_RECORD, 0, 4 };
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), &f, 1), VARVE_EINVAL, "'a'");
	f = (struct varve_field){ "a", (enum varve_type)1000, 0, 4 };
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), &f, 1), VARVE_EINVAL, "'a'");
	f = (struct varve_field){ "a", VARVE_I32, SIZE_MAX - 1, 4 };
	FAILS(varve_protect_records(v, "q", p, N, sizeof(p[0]), &f, 1), VARVE_EINVAL, "'a'");
	FAILS(varve_protect_array(v, "q", p, VARVE_RECORD, 1, (size_t[]){ 1 }), VARVE_EINVAL, "type");
	ok(settle_checkpoint(v));
	ok(varve_close(v));
}

int main(void)
{
	varve *v = NULL; /* keeps the store in memory */

	ok(varve_open("mem:records", "keeper", "log=error", &v));
	check_epochs();
	check_reader();
	check_mismatch();
	check_refused();
	ok(varve_close(v));
	return 0;
}
