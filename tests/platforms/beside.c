// Another program on Windows, for tests/platforms/wine.
//
//   beside hold PATH       has a file open that nobody else may open, until its standard input ends

#include <windows.h>
#include <stdio.h>

static int hold(const wchar_t *path) {
    HANDLE file = CreateFileW(path, GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return 1;
    puts("held");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    CloseHandle(file);
    return 0;
}

int wmain(int argc, wchar_t **argv) {
    int failed = argc < 3;
    for (int n = 2; n < argc; n++)
        failed |= hold(argv[n]);
    return failed;
}
