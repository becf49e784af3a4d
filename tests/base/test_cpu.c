// ctest: TIMEOUT 20
/* Levels of vector units: no more than the machine has, no more than what VARVE_CPU says, whatever it says; and the tables are those of the level. */
#include "base/cpu.h"
#include "base/log.h"
#include "vv_test.h"
#include <sys/wait.h>
#include <unistd.h>

/* The level of a new process. */
static int level_with(const char *text)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		vv_log_set_level(VV_LOG_ERROR);
		if (text)
			setenv("VARVE_CPU", text, 1);
		else
			unsetenv("VARVE_CPU");
		_exit((int)vv_cpu_level());
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

static void test_environment(void)
{
	int most = (int)vv_cpu_most();

	CHECK_EQ(level_with(NULL), most);
	CHECK_EQ(level_with(""), most);
	CHECK_EQ(level_with("avx1024"), most);
	CHECK_EQ(level_with("baseline"), VV_CPU_BASELINE);
	CHECK_EQ(level_with("AVX2"), least(most, VV_CPU_AVX2));
	CHECK_EQ(level_with("avx512"), least(most, VV_CPU_AVX512));
}

static void test_hold(void)
{
	int most = (int)vv_cpu_most();

	for (int level = VV_CPU_AVX512; level >= VV_CPU_BASELINE; level--) {
		CHECK_EQ(vv_cpu_hold((enum vv_cpu_level)level), least(most, level));
		CHECK_EQ(vv_cpu_level(), least(most, level));
	}
	CHECK_EQ(vv_cpu_hold(VV_CPU_LEVELS), most);
	CHECK_STR(vv_cpu_name(VV_CPU_BASELINE), "baseline");
	CHECK_STR(vv_cpu_name(VV_CPU_AVX2), "avx2");
	CHECK_STR(vv_cpu_name(VV_CPU_AVX512), "avx512");
}

#if VV_HAVE_LEVELS
static const int table_baseline, table_avx2, table_avx512;

static void test_tables(void)
{
	const int *up_to_avx2[] = { &table_baseline, &table_avx2, &table_avx2 };
	const int *up_to_avx512[] = { &table_baseline, &table_avx2, &table_avx512 };

	for (int level = VV_CPU_BASELINE; level <= (int)vv_cpu_most(); level++) {
		vv_cpu_hold((enum vv_cpu_level)level);
		CHECK(VV_CPU_UP_TO_AVX2(table) == up_to_avx2[level]);
		CHECK(VV_CPU_UP_TO_AVX512(table) == up_to_avx512[level]);
	}
}
#else
static const int table_baseline;

static void test_tables(void)
{
	CHECK(VV_CPU_UP_TO_AVX2(table) == &table_baseline);
	CHECK(VV_CPU_UP_TO_AVX512(table) == &table_baseline);
}
#endif

int main(void)
{
	test_environment(); /* before this process has asked */
	test_hold();
	test_tables();
	return 0;
}
