// Gets functions out of another program's own source, without installing what that source stands on: imports that do
// not matter to the functions are stubs that do nothing. Needs node --experimental-vm-modules.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import vm from 'node:vm';

/** Something that can be called, constructed and asked for anything, and never means anything. */
const nothing = new Proxy(function () {}, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => 0 : nothing),
    apply: () => nothing,
    construct: () => nothing,
});

/** The names that a module takes from each of its imports. */
function imported(text) {
    const names = new Map();
    const note = (from, name) => names.set(from, (names.get(from) ?? new Set()).add(name));
    for (const [, what, from] of text.matchAll(/^import\s+([^"';]*?)\s*from\s*["']([^"']+)["']/gm)) {
        const list = what.match(/\{([^}]*)\}/)?.[1] ?? '';
        for (const part of list.split(',')) {
            const name = part.trim().split(/\s+as\s+/)[0];
            if (name && !part.trim().startsWith('type ')) note(from, name);
        }
        if (!what.startsWith('{') && !what.startsWith('*')) note(from, 'default');
    }
    return names;
}

/**
 * Evaluates a source file and returns bindings of it that need not be exported.
 *
 * @param path the file
 * @param names of the bindings
 * @param real says which imports, by their specifier, are evaluated as they are
 * @param compile turns the file into JavaScript
 */
export async function original(path, names, real = () => false, compile = (text) => text) {
    const text = compile(readFileSync(path, 'utf8'));
    const wanted = imported(text);
    const exported = names.map((name, n) => `${name} as original${n}`).join(', ');
    const module = new vm.SourceTextModule(names.length ? `${text}\nexport { ${exported} };` : text, {
        identifier: path,
        initializeImportMeta: (meta) => (meta.url = `file://${path}`),
    });
    await module.link(async (specifier) => {
        if (real(specifier)) return (await original(resolve(dirname(path), specifier), [], real, compile)).module;
        const keys = [...(wanted.get(specifier) ?? [])];
        return new vm.SyntheticModule(keys, function () {
            for (const key of keys) this.setExport(key, nothing);
        });
    });
    await module.evaluate();
    return { module, bindings: names.map((_, n) => module.namespace[`original${n}`]) };
}
