// Another program on Windows, for tests/platforms/wine.
//
//   beside list PATH...    who may do what with files: their owners and access lists, as text
//   beside hold PATH       has a file open that nobody else may open, until its standard input ends

#include <windows.h>
#include <aclapi.h>
#include <sddl.h>
#include <stdio.h>

static int list(const wchar_t *path) {
    const SECURITY_INFORMATION what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    PSECURITY_DESCRIPTOR descriptor = NULL;
    wchar_t *text = NULL;
    if (GetNamedSecurityInfoW(path, SE_FILE_OBJECT, what, NULL, NULL, NULL, NULL, &descriptor)
        || !ConvertSecurityDescriptorToStringSecurityDescriptorW(descriptor, SDDL_REVISION_1, what, &text, NULL))
        return 1;
    wprintf(L"%ls\n", text);
    return 0;
}

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
        failed |= argv[1][0] == L'l' ? list(argv[n]) : hold(argv[n]);
    return failed;
}
